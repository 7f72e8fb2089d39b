"""What needs the live T-SQL server is collected only where there is one."""

from tests.support.stores import live_url

collect_ignore = [] if live_url() else ["test_roles.py", "test_role_matrix.py"]
