"""Collecting dead processes, our own and, as PID 1 or subreaper, those that nobody else waits for."""

import os

import msgspec


class Exit(msgspec.Struct, frozen=True):
    """How a process ended."""

    pid: int
    code: int | None
    """Exit code; None when a signal ended it."""
    signal: int | None
    peak_memory_kb: int


def reap() -> list[Exit]:
    """Everything that has died since the last call; never blocks."""
    dead: list[Exit] = []
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return dead
        if pid == 0:
            return dead
        result = os.waitstatus_to_exitcode(status)
        dead.append(
            Exit(
                pid=pid,
                code=result if result >= 0 else None,
                signal=-result if result < 0 else None,
                peak_memory_kb=int(usage.ru_maxrss),
            )
        )
