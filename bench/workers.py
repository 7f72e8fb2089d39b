"""Real `chokaq worker` programs, with the bench's application and default settings."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson
import yaml

from bench.application import CALLS, QUEUE
from bench.processes import Process, exact_cpu, look, private_mb, title, tree
from bench.record import LOG, SLEEP
from bench.target import BenchError
from chokaq.store.options import DatabaseSettings

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS, STOP_SECONDS = 180.0, 60.0


class Worker:
    """One program with `children` processes for the bench's queue. Use it in a `with` block."""

    def __init__(
        self,
        database: DatabaseSettings,
        folder: Path,
        *,
        children: int = 1,
        options: Mapping[str, object] | None = None,
        log: Path | None = None,
        sleep: float = 0.0,
        calls: bool = False,
        app: str = "bench.application:app",
    ) -> None:
        """`options`: of the queue; none given: the defaults that users get. `log`: where handlers leave their records.

        `calls`: count store calls (see `counts_in`); such a run is not to be timed.
        """
        self.children_wanted = children
        self.counts_in = folder / f"calls-of-{time.monotonic_ns()}" if calls else None
        self.output = folder / "worker.log"
        self._config = folder / "chokaq.yaml"
        queue = {"processes": children, **(options or {})}
        document = {
            "app": app,
            "database": {"url": database.url, "schema": database.schema},
            "log_format": "json",
            "queues": {QUEUE: queue},
        }
        self._config.write_text(yaml.safe_dump(document))
        self._config.chmod(0o600)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CHOKAQ_", "BENCH_"))}
        path = os.pathsep.join(filter(None, (str(ROOT), clean.get("PYTHONPATH"))))
        self._environ = {**clean, "PYTHONPATH": path}
        if log is not None:
            self._environ |= {LOG: str(log), SLEEP: str(sleep)}
        if self.counts_in is not None:
            self.counts_in.mkdir()
            self._environ[CALLS] = str(self.counts_in)

    def __enter__(self) -> Self:
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "chokaq", "worker", "--config", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environ,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.stop()

    def wait_ready(self) -> None:
        """Wait until every child claims."""
        deadline = time.monotonic() + READY_SECONDS
        while len(self.events("worker_started")) < self.children_wanted:
            self.check()
            if time.monotonic() > deadline:
                raise BenchError(f"the worker was not ready after {READY_SECONDS:g} s: see {self.output}")
            time.sleep(0.02)

    def check(self) -> None:
        """Raises BenchError with the end of its log when the program is no longer there."""
        if self.process.poll() is not None:
            tail = self.output.read_text(errors="replace").strip().splitlines()[-5:]
            raise BenchError(f"the worker ended with exit code {self.process.returncode}:\n" + "\n".join(tail))

    def events(self, name: str | None = None, *, levels: tuple[str, ...] = ()) -> list[dict[str, object]]:
        """What it logged: the events of that name, or those of these levels."""
        found = []
        for line in self.output.read_bytes().splitlines():
            try:
                event = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if event.get("event") == name or event.get("level") in levels:
                found.append(event)
        return found

    def processes(self) -> list[Process]:
        """The whole program: supervisor, children, maintenance."""
        return tree({self.process.pid})

    def children(self) -> list[int]:
        """The processes that run jobs."""
        return [process.pid for process in self.processes() if title(process.pid).startswith(f"chokaq: {QUEUE} #")]

    def cpu(self) -> float:
        """CPU seconds of the whole program so far."""
        return sum(process.cpu for process in self.processes())

    def children_cpu(self) -> float:
        """CPU seconds of the children so far, to the microsecond."""
        return sum(map(exact_cpu, self.children()))

    def memory_mb(self) -> list[float]:
        """Private memory of each child."""
        return [private_mb(pid) for pid in self.children()]

    def kill_child(self) -> int:
        """SIGKILL to one child; its pid."""
        pid = self.children()[0]
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self) -> int:
        """Drain it; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            for process in self.processes():
                if look(process.pid) is not None:
                    os.kill(process.pid, signal.SIGKILL)
            code = self.process.wait()
        return code
