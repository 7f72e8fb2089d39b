"""Prometheus's programs as servers on loopback, started and ended by a test."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.support.polling import wait_until

from .prometheus import found

TRIES = 5
"""Another program may take the port that was free a moment ago."""
BOOT = 60.0


class Server:
    """One that answers on a port of 127.0.0.1."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.port = port
        self._log = log

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def get(self, path: str, **query: str) -> str:
        """The body of an answer. Raises OSError, URLError included."""
        with urlopen(f"http://{self.address}{path}?{urlencode(query)}", timeout=20) as answer:
            return str(answer.read().decode())

    def ask(self, path: str, **query: str) -> Any:
        """The data of a JSON answer of Prometheus's API."""
        return json.loads(self.get(path, **query))["data"]

    def post(self, path: str, document: Any) -> None:
        """Send a JSON document."""
        request = Request(
            f"http://{self.address}{path}", json.dumps(document).encode(), {"Content-Type": "application/json"}
        )
        with urlopen(request, timeout=20):
            pass

    def answers(self) -> bool:
        """Whether it is up."""
        with suppress(URLError, OSError):
            self.get("/-/ready")
            return True
        return False

    def has_ended(self) -> bool:
        """Whether its process is gone."""
        return self._process.poll() is not None

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-4_000:]

    def end(self) -> None:
        """TERM, and KILL for one that does not obey."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(program: str, folder: Path, *arguments: str) -> Iterator[Server]:
    """The program while the block runs; it is told its address by --web.listen-address."""
    server = _started(program, folder, arguments)
    try:
        yield server
    finally:
        server.end()


def _started(program: str, folder: Path, arguments: tuple[str, ...]) -> Server:
    path, log = found(program), folder / f"{program}.log"
    for _ in range(TRIES):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        with log.open("wb") as out:
            process = subprocess.Popen(
                [path, *arguments, f"--web.listen-address=127.0.0.1:{port}"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        server = Server(process, port, log)
        wait_until(lambda server=server: server.answers() or server.has_ended(), f"{program} to be up", BOOT)  # type: ignore[misc]
        if not server.has_ended():
            return server
        if "address already in use" not in server.said():
            break
    raise AssertionError(f"{program} has ended:\n{server.said()}")
