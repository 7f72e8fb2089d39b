"""What the parent imports before it forks."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = """
import sys
from chokaq.config import Settings
from chokaq.store.options import DatabaseSettings
from chokaq.supervisor.spawn import load_entries, preload

load_entries()
preload(Settings(database=DatabaseSettings(url="sqlite:///unused.db")))
before = set(sys.modules)
import chokaq
for name in chokaq.__all__:
    getattr(chokaq, name)
import chokaq.store.sqlite
print(*sorted(set(sys.modules) - before))
"""


def test_what_an_application_imports_of_chokaq_its_children_share_with_their_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
