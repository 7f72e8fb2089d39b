"""`chokaq worker` whose first child kills itself with SIGKILL right before or right after its n-th call of one store operation.

usage: doomed_worker.py CONFIG OPERATION (before | after) N MARKER
MARKER is a file created by the victim, so that no other child dies.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from chokaq.config import load_settings
from chokaq.store.sqlite import SqliteSession
from chokaq.supervisor import run


def doom(session_type: Any, operation: str, moment: str, countdown: int, marker: str) -> None:
    """Patch the operation; the patch is inherited by every child, the marker lets only one die of it."""
    call = getattr(session_type, operation)
    calls = 0

    def deadly(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        busy = operation in ("register_worker", "fetch_jobs") or bool(args[1])
        calls += busy
        mine = busy and calls == countdown and not Path(marker).exists() and args[0].queue != ""
        if mine and moment == "before":
            die(marker)
        answer = call(self, *args, **kwargs)
        if mine:
            die(marker)
        return answer

    setattr(session_type, operation, deadly)


def die(marker: str) -> None:
    """Only one process creates the marker; it dies at once."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def session_class(url: str) -> Any:
    """The session type that the URL's store opens."""
    if url.startswith("sqlite:"):
        return SqliteSession
    from chokaq.store.sqlserver import SqlServerSession

    return SqlServerSession


if __name__ == "__main__":
    config, operation, moment, countdown, marker = sys.argv[1:6]
    settings = load_settings(Path(config))
    doom(session_class(settings.database.url), operation, moment, int(countdown), marker)
    sys.exit(run(settings))
