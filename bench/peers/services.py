"""PostgreSQL and Redis for the peers: servers of the bench's own, with their untouched default settings, on free ports."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from bench.target import BenchError

_START_SECONDS = 30.0


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """A fresh cluster."""

    def __init__(self) -> None:
        """Raises BenchError when PostgreSQL is not installed."""
        self._bin = _newest("initdb")
        if self._bin is None:
            raise BenchError("PostgreSQL is not installed: apt-get install postgresql")
        # Not under a home: its server refuses to run as root, and another user could not enter there.
        self._folder = Path(tempfile.mkdtemp(prefix="chokaq-bench-postgres-", dir="/var/tmp"))
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres")
        self._run("initdb", "--auth=trust", "--username=bench", "--pgdata", str(self._data))
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "start", "-w", "-D", str(self._data), "-o", options, "-l", str(self._folder / "log"))

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def create(self, name: str) -> None:
        """A database."""
        self._sql("postgres", f"CREATE DATABASE {name}")

    def settle(self, name: str) -> None:
        """Fresh statistics, and no checkpoint in the middle of the run that follows."""
        self._sql(name, "ANALYZE")
        self._sql(name, "CHECKPOINT")

    def close(self) -> None:
        """Stop it and delete its files."""
        self._run("pg_ctl", "stop", "-m", "fast", "-D", str(self._data))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _sql(self, name: str, statement: str) -> None:
        url = f"postgresql://bench@127.0.0.1:{self.port}/{name}"
        subprocess.run(["psql", "-qX", "-d", url, "-c", statement], check=True, stdout=subprocess.DEVNULL)

    def _run(self, program: str, *arguments: str) -> None:
        assert self._bin is not None
        command = [str(self._bin / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", check=False
        )
        if done.returncode:
            raise BenchError(f"{program} failed: {done.stderr.decode(errors='replace').strip()}")


class Redis:
    """A server without a configuration file: its defaults, snapshots included."""

    def __init__(self) -> None:
        """Raises BenchError when Redis is not installed."""
        program = shutil.which("redis-server")
        if program is None:
            raise BenchError("Redis is not installed: apt-get install redis-server")
        self._folder = Path(tempfile.mkdtemp(prefix="chokaq-bench-redis-", dir="/var/tmp"))
        self.port = free_port()
        self._process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BenchError("Redis did not start")
            time.sleep(0.05)

    def close(self) -> None:
        """Stop it and delete its files."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _newest(program: str) -> Path | None:
    """The folder of the newest PostgreSQL of this host."""
    if (found := shutil.which(program)) is not None:
        return Path(found).parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob(f"*/bin/{program}")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)
