"""Starting a supervisor as a program, reading its log, and ending it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.support.polling import wait_until

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[2]
Event = dict[str, Any]


class Program:
    """A supervisor under test; everything it started ends with it."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.log = folder / "log"
        self._pids: set[int] = set()
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
        found = []
        # Up to the last end of line: a line may be on its way.
        for line in self.log.read_bytes().rpartition(b"\n")[0].splitlines():
            if not line.startswith(b"{"):
                continue
            event = msgspec.json.decode(line)
            if "pid" in event:
                self._pids.add(event["pid"])
            if name in (None, event["event"]) and all(event.get(key) == value for key, value in where.items()):
                found.append(event)
        return found

    def wait(self, name: str, count: int = 1, /, *, timeout: float = 30.0, **where: object) -> list[Event]:
        """Until the log holds that many such events."""
        try:
            wait_until(lambda: len(self.events(name, **where)) >= count, f"{count} x {name} {where}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; the log:\n{self.log.read_text()[-6000:]}") from None
        return self.events(name, **where)

    def send(self, number: signal.Signals) -> None:
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
            raise AssertionError(
                f"it did not end within {timeout} s; the log:\n{self.log.read_text()[-6000:]}"
            ) from None

    def freeze(self, seconds: float) -> None:
        """Stop the whole process group for a while, as a terminal or a frozen host does."""
        os.killpg(self.pid, signal.SIGSTOP)
        until = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() > until, "the end of the freeze", seconds + 5)
        os.killpg(self.pid, signal.SIGCONT)

    def destroy(self) -> None:
        """Kill whatever is left of it: the session it was started in is its own."""
        self.events()
        for pid in (self.process.pid, *self._pids):
            try:
                if os.getsid(pid) == self.process.pid:
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()


def alive(pid: int) -> bool:
    """True while the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class FakeProgram(Program):
    """A supervisor with fake processes."""

    def __init__(self, folder: Path, config: str, environ: dict[str, str] | None = None) -> None:
        self.config = folder / "chokaq.yaml"
        self.control = folder / "control"
        self.control.mkdir(exist_ok=True)
        self.write_application()
        self.configure(config)
        super().__init__([str(PROGRAMS / "fake_processes.py"), str(self.config), str(self.control)], folder, environ)

    def configure(self, text: str, database: str = "sqlite:///unused.db") -> None:
        """Write the YAML file."""
        self.config.write_text(f"app: fake_shop:app\ndatabase: {database}\n{text}")

    def write_application(self, text: str = "") -> None:
        """The application: only ever described, never run. `text`: more of its code."""
        fresh = self.config.with_name(".fresh")
        fresh.write_text(f"from chokaq import ChokaQ\napp = ChokaQ()\n{text}\n")
        fresh.replace(self.config.with_name("fake_shop.py"))

    def script(self, queue: str, **script: object) -> None:
        """What the queue's children do from now on."""
        write_script(self.control, queue, **script)

    def notices(self) -> list[Event]:
        """What maintenance got, in order of arrival."""
        file = self.control / "notices.jsonl"
        return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def write_script(control: Path, name: str, **script: object) -> None:
    """Put a control file in place whole."""
    control.mkdir(exist_ok=True)
    fresh = control / f".{name}"
    fresh.write_bytes(msgspec.json.encode(script))
    fresh.replace(control / f"{name}.json")


@contextmanager
def running(program: Program) -> Iterator[Program]:
    """Destroy it in the end."""
    try:
        yield program
    finally:
        program.destroy()
