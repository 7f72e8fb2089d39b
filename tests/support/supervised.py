"""A supervisor as a program of its own: starting it, reading its log, signalling and ending it by its id."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from .polling import wait_until
from .processes import ROOT

Event = dict[str, Any]
TAIL = 6_000
"""Characters of the log that a failure shows."""


class Program:
    """A supervisor under test; everything it started ends with it."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str] | None = None) -> None:
        """`command`: arguments of the interpreter; `folder`: its working directory, and the log's."""
        self.folder = folder
        self.log = folder / "log"
        self._pids: set[int] = set()
        self._read = 0
        self._events: list[Event] = []
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **(environ or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The supervisor's."""
        return self.process.pid

    def events(self, name: str | None = None, /, **where: object) -> list[Event]:
        """The log so far: events of that name whose fields have these values."""
        self._read_on()
        return [
            event
            for event in self._events
            if name in (None, event["event"]) and all(event.get(key) == value for key, value in where.items())
        ]

    def wait(self, name: str, count: int = 1, /, *, timeout: float = 30.0, **where: object) -> list[Event]:
        """Until the log holds that many such events."""
        self.until(lambda: len(self.events(name, **where)) >= count, f"{count} x {name} {where}", timeout)
        return self.events(name, **where)

    def until(self, condition: Callable[[], bool], what: str, timeout: float = 30.0) -> None:
        """Until `condition` holds; a failure shows the end of the log."""
        try:
            wait_until(condition, what, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; the log:\n{self.tail()}") from None

    def tail(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-TAIL:]

    def send(self, number: int) -> None:
        """Signal the supervisor alone."""
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM, timeout: float = 30.0) -> int:
        """Signal it and wait for its exit code."""
        self.send(number)
        return self.exit_code(timeout)

    def exit_code(self, timeout: float = 30.0) -> int:
        """Wait for its end."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {timeout} s; the log:\n{self.tail()}") from None

    def freeze(self, seconds: float) -> None:
        """Stop the whole process group for a while, as a terminal or a frozen host does."""
        os.killpg(self.pid, signal.SIGSTOP)
        until = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() > until, "the end of the freeze", seconds + 5)
        os.killpg(self.pid, signal.SIGCONT)

    def pids(self) -> set[int]:
        """Every process of it that the log has named and that still lives, the supervisor included."""
        self._read_on()
        return {pid for pid in (self.process.pid, *self._pids) if self._is_ours(pid)}

    def destroy(self) -> None:
        """Kill whatever is left of it: the session it was started in is its own."""
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def _is_ours(self, pid: int) -> bool:
        try:
            return os.getsid(pid) == self.process.pid and alive(pid)
        except ProcessLookupError:
            return False

    def _read_on(self) -> None:
        with self.log.open("rb") as log:
            log.seek(self._read)
            # Up to the last end of line: a line may be on its way.
            fresh = log.read().rpartition(b"\n")[0]
        if fresh:
            self._read += len(fresh) + 1
        for line in fresh.splitlines():
            if line.startswith(b"{"):
                event = msgspec.json.decode(line)
                self._events.append(event)
                if "pid" in event:
                    self._pids.add(event["pid"])


def alive(pid: int) -> bool:
    """True while the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
