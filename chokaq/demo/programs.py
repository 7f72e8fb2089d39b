"""The programs a demo starts, and ends again: the outside world and the worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from chokaq.demo.errors import DemoError

END_SECONDS = 45.0


def examples_folder() -> Path:
    """Where the shop's code stands: in the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "shop" / "jobs.py").is_file():
            return folder
    raise DemoError("the example application (examples/shop) is not installed beside chokaq; reinstall chokaq")


def parent_of(pid: int) -> int | None:
    """The parent of a process of this host; None when there is no such process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold blanks: count from its end.
    return int(status.rpartition(")")[2].split()[1])


class Endpoints:
    """The SMTP server and the HTTP endpoint, as a program of their own."""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "chokaq.demo.endpoints"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise DemoError("the demo's SMTP and HTTP servers did not start; see the message above")
        ports = orjson.loads(line)
        self.smtp, self.http = f"127.0.0.1:{ports['smtp']}", f"127.0.0.1:{ports['http']}"
        return self

    def ledger(self) -> dict[str, dict[str, int]]:
        """What arrived outside, per queue and job id."""
        from urllib.request import urlopen

        with urlopen(f"http://{self.http}/ledger", timeout=30) as answer:
            received: dict[str, dict[str, int]] = orjson.loads(answer.read())
        return received

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Worker:
    """`chokaq worker` on the shop's configuration; its log goes to a file."""

    def __init__(self, config: Path, log: Path, environ: Mapping[str, str]) -> None:
        self.config, self.log, self.environ = config, log, {**os.environ, **environ}

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "chokaq", "worker", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environ,
            )
        return self

    def check(self) -> None:
        """Raise DemoError with the end of its log when it is no longer there."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace").strip().splitlines()[-5:]
            raise DemoError(f"the worker ended with exit code {self.process.returncode}:\n" + "\n".join(tail))

    def stop(self) -> int:
        """Drain it; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.stop()
