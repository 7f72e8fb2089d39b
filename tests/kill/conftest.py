"""The wire tests need a T-SQL server: they exist only when one is given."""

import os

collect_ignore = [] if os.environ.get("CHOKAQ_TEST_SQLSERVER") else ["test_wire.py"]
