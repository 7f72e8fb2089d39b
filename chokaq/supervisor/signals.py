"""Signals of the parent: the handler does nothing but wake the loop through a pipe; the loop decides."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from chokaq.observe.levels import LEVEL_SIGNALS

HANDLED: tuple[int, ...] = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGUSR2,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGCHLD,
    signal.SIGUSR1,
    *LEVEL_SIGNALS,
)
"""USR1 does nothing: log rotation sends it out of habit, and its default would end us."""
_READ = 4_096


class SignalPipe:
    """A self-pipe: every handled signal becomes one byte that the loop can select on."""

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._old_fd = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._old_handlers: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}
        for number in HANDLED:
            self._old_handlers[number] = signal.signal(number, _note)

    def fileno(self) -> int:
        """Readable when a signal has come."""
        return self._read_fd

    def drain(self) -> list[int]:
        """The signals that came since the last call, in order."""
        try:
            return list(os.read(self._read_fd, _READ))
        except BlockingIOError:
            return []

    def close(self) -> None:
        """Put the former handlers back."""
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._close_pipe()

    def close_in_child(self) -> None:
        """In a fresh child: a signal of its own must not wake the parent's loop."""
        signal.set_wakeup_fd(-1)
        self._close_pipe()

    def _close_pipe(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)


def _note(_number: int, _frame: FrameType | None) -> None:
    """The C-level handler has already written the byte."""


@contextmanager
def blocked() -> Iterator[None]:
    """Hold every signal back, so that none reaches a child before its own handlers stand."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
