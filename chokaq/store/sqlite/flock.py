"""The queue in front of SQLite's single writer.

SQLite lets waiting writers poll: with forty processes one of them waits ten seconds or gives up with "database is locked". An
flock on a file beside the database wakes them in turn instead. The kernel releases it when its holder dies. Every session has
its own open file description, so threads of one process exclude each other too.
"""

import fcntl
import os
import threading
import weakref
from pathlib import Path

from chokaq.store.errors import StoreMisconfigured, StoreUnavailable
from chokaq.store.sqlite import interrupt


class FileLock:
    """An exclusive lock on a file, held by one open file description. Not re-entrant; used by one thread at a time."""

    def __init__(self, path: Path, timeout: float) -> None:
        """`path`: created when missing, never deleted. `timeout`: seconds to wait for a holder that lives and does not let go."""
        self._path = path
        self._timeout = timeout
        self._fd: int | None = None
        _ALIVE.add(self)

    def acquire(self) -> None:
        """Wait until the lock is ours. Raises StoreUnavailable when that takes too long (its holder may have been stopped)."""
        fd = self._descriptor()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(fd)

    def release(self) -> None:
        """Let the next one in; harmless when the lock is not held."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up the file description, and the lock with it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _descriptor(self) -> int:
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise StoreMisconfigured(
                    f"database.url: cannot open {self._path} ({error.strerror}): the folder must exist and be writable "
                    "for this user"
                ) from error
        return self._fd

    def _wait(self, fd: int) -> None:
        if interrupt.allowed():
            if not interrupt.lock(fd, self._timeout):
                raise self._too_long()
            return
        waiter = _Waiter(fd)
        won = False
        try:
            won = waiter.wait(self._timeout)
        finally:
            if not won:
                # The descriptor belongs to the waiter now.
                self._fd = None
                waiter.abandon()
        if not won:
            raise self._too_long()

    def _too_long(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._path}: another process has held the writers' lock for {self._timeout:g} s; it may have been stopped"
        )


class _Waiter:
    """Where signals are not ours a blocking flock cannot be ended: a thread waits in it, only while the lock is taken."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._won = threading.Event()
        self._abandoned = False
        self._mutex = threading.Lock()
        threading.Thread(target=self._run, name="chokaq-flock", daemon=True).start()

    def wait(self, timeout: float) -> bool:
        return self._won.wait(timeout)

    def abandon(self) -> None:
        with self._mutex:
            self._abandoned = True
            if self._won.is_set():
                self._let_go()

    def _run(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._mutex:
            self._won.set()
            if self._abandoned:
                self._let_go()

    def _let_go(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


_ALIVE: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def _forget_inherited() -> None:
    """A forked child shares its parent's file descriptions: keeping them would keep the lock of a parent that dies."""
    for lock in list(_ALIVE):
        lock.close()


os.register_at_fork(after_in_child=_forget_inherited)
