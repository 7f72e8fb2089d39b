"""A blocking flock with a deadline: the wait is in the calling thread, and a signal to that thread ends it.

flock(2) knows no time limit, and only a signal gets a thread out of it. Where the signals are ours (`allow`), a guard thread sends
SIGURG to a thread whose time is up; its handler does nothing, and where somebody took the handler away SIGURG is ignored, so that
such a thread waits on instead of dying. Elsewhere the lock is waited for in a thread of its own (chokaq.store.sqlite.flock), which
costs two more switches of threads for every wait.
"""

import ctypes
import errno
import fcntl
import os
import signal
import threading
import time

SIGNAL = signal.SIGURG
_LOOK = 1.0
"""Seconds between two looks of the guard at the deadlines, while somebody waits."""
_AGAIN = 0.05
"""Seconds after which a thread is told again: the signal may have come just before its call."""

_flock = ctypes.CDLL(None, use_errno=True).flock
_flock.argtypes, _flock.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int


class _Guard:
    """Who waits until when; and the thread that ends what lasts too long, asleep while nobody waits."""

    def __init__(self) -> None:
        self._deadlines: dict[int, float] = {}
        self._mutex = threading.Lock()
        self._news = threading.Event()
        self._parked = True
        self._thread: threading.Thread | None = None

    def add(self, deadline: float) -> None:
        """The calling thread is about to block."""
        with self._mutex:
            self._deadlines[threading.get_ident()] = deadline
            if self._parked:
                self._parked = False
                self._news.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="chokaq-flock", daemon=True)
                self._thread.start()

    def remove(self) -> None:
        """It does not block any more."""
        with self._mutex:
            self._deadlines.pop(threading.get_ident(), None)

    def _watch(self) -> None:
        quiet = 0
        while True:
            self._news.wait(self._look())
            with self._mutex:
                quiet = 0 if self._deadlines else quiet + 1
                self._parked = quiet > 1
                self._news.clear()

    def _look(self) -> float | None:
        """End what is overdue; the seconds until the next look, None: until there is news."""
        now = time.monotonic()
        with self._mutex:
            if self._parked:
                return None
            overdue = [thread for thread, deadline in self._deadlines.items() if deadline <= now]
            for thread in overdue:
                signal.pthread_kill(thread, SIGNAL)
            if overdue:
                return _AGAIN
            return max(0.0, min(_LOOK, min(self._deadlines.values(), default=now + _LOOK) - now))


_guard: _Guard | None = None


def allow() -> None:
    """From now on waits of this process end by SIGURG. For processes of chokaq's own; call it in their main thread."""
    global _guard  # noqa: PLW0603 - one per process, as its signal handlers are
    signal.signal(SIGNAL, lambda _number, _frame: None)
    _guard = _Guard()


def allowed() -> bool:
    """Whether `allow` was called in this process."""
    return _guard is not None


def lock(descriptor: int, timeout: float) -> bool:
    """Take the exclusive flock of a file; False when it could not be had within `timeout` seconds. Only where it is allowed."""
    assert _guard is not None
    deadline = time.monotonic() + timeout
    _guard.add(deadline)
    try:
        while _flock(descriptor, fcntl.LOCK_EX):
            if (number := ctypes.get_errno()) != errno.EINTR:
                raise OSError(number, os.strerror(number))
            if time.monotonic() >= deadline:
                return False
        return True
    finally:
        _guard.remove()


def _forget() -> None:
    global _guard  # noqa: PLW0603 - the guard's thread has stayed in the parent
    _guard = None


os.register_at_fork(after_in_child=_forget)
