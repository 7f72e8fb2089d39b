"""One system under measurement: its producer in a process of its own, its worker programs, its server. The same for all."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peers.catalogue import Peer
from bench.peers.environments import python_of
from bench.peers.kit import PLACE, POSTGRES, REDIS
from bench.peers.services import Postgres, Redis
from bench.processes import look, server_cpu, tree
from bench.record import LOG, SLEEP, Log
from bench.target import BenchError
from bench.workers import ROOT

_STOP_SECONDS = 10.0


class System:
    """A peer, ready to be measured."""

    def __init__(
        self, peer: Peer, folder: Path, *, postgres: Postgres | None, redis: Redis | None, port: int | None
    ) -> None:
        """`folder`: of this system alone; `port`: of a T-SQL server that is there already."""
        self.peer = peer
        self._postgres = postgres if peer.service == "postgres" else None
        ports = {
            "postgres": None if postgres is None else postgres.port,
            "redis": None if redis is None else redis.port,
            "tsql": port,
        }
        self._port = ports.get(peer.service or "")
        self._python = python_of(peer)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log = Log(folder / "records")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CHOKAQ_", "BENCH_"))}
        scripts = os.pathsep.join([str(self._python.parent), clean.get("PATH", os.defpath)])
        self._environ = {**clean, "PATH": scripts, "PYTHONPATH": str(ROOT), PLACE: str(folder)}
        if postgres is not None:
            self._environ[POSTGRES] = str(postgres.port)
        if redis is not None:
            self._environ[REDIS] = str(redis.port)
        if self._postgres is not None:
            self._postgres.create(peer.name)
        self._output = (folder / "output").open("ab")
        self._driver = subprocess.Popen(
            [str(self._python), "-m", "bench.peers.drive", peer.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env=self._environ,
            cwd=folder,
            text=True,
        )
        self.about = self.ask("describe")

    @property
    def setups(self) -> dict[str, dict[str, Any]]:
        """Its set-ups by name: commands, jobs."""
        return dict(self.about["setups"])

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Let the driver do something. Raises BenchError with the end of its output when it fails."""
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        try:
            self._driver.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
            self._driver.stdin.flush()
        except BrokenPipeError:
            raise self._failed(what) from None
        line = self._driver.stdout.readline()
        if not line:
            raise self._failed(what)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def settle(self) -> None:
        """Let a database that was just filled come to rest."""
        if self._postgres is not None:
            self._postgres.settle(self.peer.name)

    def server_cpu(self) -> float | None:
        """CPU seconds of its server so far; None without one."""
        return None if self._port is None else server_cpu(self._port)

    @contextmanager
    def working(self, setup: str, *, sleep: float = 0.0) -> Iterator["Programs"]:
        """The worker programs of a set-up, ended afterwards."""
        environ = {**self._environ, LOG: str(self.log.path), SLEEP: str(sleep)}
        programs = Programs(self.setups[setup]["commands"], environ, self.folder, self._output)
        try:
            yield programs
        finally:
            programs.stop()

    def wait_finished(self, timeout: float) -> float:
        """Wait until the system itself says that nothing is left; how many are."""
        deadline = time.monotonic() + timeout
        while (left := self.ask("unfinished")["count"]) and time.monotonic() < deadline:
            time.sleep(0.1)
        return float(left)

    def close(self) -> None:
        """End the driver."""
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.close()
        try:
            self._driver.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._driver.stdout.close()
        self._output.close()

    def _failed(self, what: str) -> BenchError:
        self._output.flush()
        tail = (self.folder / "output").read_text(errors="replace").strip().splitlines()[-8:]
        return BenchError(f"{self.peer.label}: {what} failed:\n" + "\n".join(tail))


class Programs:
    """The worker programs of one set-up, each in a session of its own."""

    def __init__(self, commands: list[list[str]], environ: dict[str, str], folder: Path, output: Any) -> None:
        self.programs = [
            subprocess.Popen(
                command,
                env=environ,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            for command in commands
        ]

    @property
    def alive(self) -> bool:
        """False once one of them has ended by itself."""
        return all(program.poll() is None for program in self.programs)

    def cpu(self) -> float:
        """CPU seconds of all their processes so far."""
        return sum(process.cpu for process in tree({program.pid for program in self.programs}))

    def kill(self) -> None:
        """SIGKILL to every process at once."""
        for process in tree({program.pid for program in self.programs}):
            if look(process.pid) is not None:
                os.kill(process.pid, signal.SIGKILL)
        for program in self.programs:
            program.wait()

    def stop(self) -> None:
        """TERM, and KILL for what is left after a while."""
        for program in self.programs:
            if program.poll() is None:
                program.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(program.poll() is None for program in self.programs) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.kill()
