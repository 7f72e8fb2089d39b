"""`chokaq worker` whose SQLite connections hold no more pages than a file allows at the moment they are opened.

usage: small_file.py worker --config …      with CHAOS_PAGES naming the file that holds the number
SQLite keeps `max_page_count` per connection and not in the database, so it has to be set in here. A connection that found the
file full is opened anew by its lane, and then sees what room there is.
"""

import os
import sqlite3
import sys
from pathlib import Path

from chokaq.cli import main
from chokaq.store.sqlite import connection as connections

connect = connections.connect


def limited(path: Path, timeout: float) -> sqlite3.Connection:
    """As the store connects, with the limit of this moment."""
    fresh = connect(path, timeout)
    fresh.execute(f"PRAGMA max_page_count = {int(Path(os.environ['CHAOS_PAGES']).read_text())}")
    return fresh


if __name__ == "__main__":
    connections.connect = limited
    sys.argv[0] = "chokaq"
    main()
