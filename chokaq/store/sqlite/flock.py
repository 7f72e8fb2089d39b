"""The queue in front of SQLite's single writer.

SQLite lets waiting writers poll: with forty processes one of them waits ten seconds or gives up with "database is locked". An
flock on a file beside the database wakes them in turn instead. The kernel releases it when its holder dies. Every session has
its own open file description, so threads of one process exclude each other too.
"""

import fcntl
import os
import weakref
from pathlib import Path

from chokaq.store.errors import StoreMisconfigured


class FileLock:
    """An exclusive lock on a file, held by one open file description. Not re-entrant; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """`path`: created when missing, never deleted. Raises StoreMisconfigured when its folder refuses it."""
        self._path = path
        self._fd: int | None = None
        _ALIVE.add(self)

    def acquire(self) -> None:
        """Wait until the lock is ours."""
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise StoreMisconfigured(
                    f"database.url: cannot open {self._path} ({error.strerror}): the folder must exist and be writable "
                    "for this user"
                ) from error
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let the next one in; harmless when the lock is not held."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up the file description, and the lock with it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


_ALIVE: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def _forget_inherited() -> None:
    """A forked child shares its parent's file descriptions: keeping them would keep the lock of a parent that dies."""
    for lock in list(_ALIVE):
        lock.close()


os.register_at_fork(after_in_child=_forget_inherited)
