"""The worker as chokaq.service starts it, before a real notify socket: what systemd hears, from whom, and when.

tests/supervisor/test_notify.py has the protocol itself; here the shipped unit's command, environment, credentials and configuration
are used, with the example shop and a SQLite file.
"""

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.polling import wait_until
from tests.support.processes import ROOT
from tests.support.supervised import Program

from .units import Unit, hand_out

pytestmark = pytest.mark.processes
WATCHDOG = 4.0
"""Seconds within which systemd wants to hear from the program, here."""
_CREDENTIALS = struct.Struct("iII")


class Message(NamedTuple):
    """One datagram."""

    at: float
    """time.monotonic() seconds."""
    pid: int
    """Of the sender, by the kernel's word: NotifyAccess=main heeds the supervisor alone."""
    lines: tuple[str, ...]


class Manager:
    """systemd's end of the socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.messages: list[Message] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(path))
        self._socket.setblocking(False)

    def listen(self) -> None:
        """Take what has arrived."""
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(4_096, socket.CMSG_SPACE(_CREDENTIALS.size))
            except BlockingIOError:
                return
            [(_, _, credentials)] = ancillary
            pid = _CREDENTIALS.unpack(credentials)[0]
            self.messages.append(Message(time.monotonic(), pid, tuple(data.decode().split("\n"))))

    def count(self, line: str, after: int = 0) -> int:
        """Messages with exactly this line, from the given one on."""
        self.listen()
        return sum(line in message.lines for message in self.messages[after:])

    def told(self, prefix: str) -> list[str]:
        """What stood behind that assignment, in order."""
        self.listen()
        lines = [line for message in self.messages for line in message.lines]
        return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """A service manager that listens."""
    found = Manager(tmp_path / "notify")
    yield found
    found.close()


@pytest.fixture
def silent_mail() -> Iterator[socket.socket]:
    """A mail server that takes the call and never says a word: a handler that works for as long as a test wants."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def start(manager: Manager, silent_mail: socket.socket, tmp_path: Path) -> Iterator[Callable[[], Program]]:
    """Start what the unit starts, with the environment it gives."""
    unit = Unit("chokaq.service")
    config = tmp_path / unit.config.name
    config.write_text(unit.config.read_text().replace("port: 9090", "port: 0"))
    arguments = [str(config) if argument.endswith(".yaml") else argument for argument in unit.arguments]
    runtime = tmp_path / "run"
    (runtime / "chokaq").mkdir(parents=True, mode=0o700)
    environ = {
        **unit.environment(runtime),
        "CREDENTIALS_DIRECTORY": str(hand_out(unit, tmp_path)),
        "NOTIFY_SOCKET": str(manager.path),
        "WATCHDOG_USEC": str(int(WATCHDOG * 1e6)),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")]),
        "SHOP_SMTP": f"127.0.0.1:{silent_mail.getsockname()[1]}",
        "CHOKAQ_DATABASE_URL": f"sqlite:///{tmp_path / 'chokaq.db'}",
        "CHOKAQ_PRODUCTION": "false",
    }
    started: list[Program] = []

    def begin() -> Program:
        started.append(Program(["-m", "chokaq", *arguments], tmp_path, environ))
        return started[-1]

    yield begin
    for program in started:
        program.destroy()


def enqueue(folder: Path, queue: str, type_key: str, payload: str) -> None:
    """From another process, as an application does."""
    program = Program(
        ["-m", "chokaq", "enqueue", type_key, payload, "--queue", queue],
        folder,
        {"CHOKAQ_DATABASE_URL": f"sqlite:///{folder.parent / 'chokaq.db'}", "PYTHONPATH": str(ROOT)},
    )
    assert program.exit_code() == 0, program.tail()


@pytest.mark.slow
def test_the_shipped_unit_is_heard_from_its_start_to_its_end(
    start: Callable[[], Program], manager: Manager, silent_mail: socket.socket, tmp_path: Path
) -> None:
    program = start()
    wait_until(lambda: manager.count("READY=1") == 1, "READY=1")
    statuses = manager.told("STATUS=")
    assert statuses[0].startswith("not ready (no live child: ")
    wait_until(
        lambda: "ready: emails 1/1, messages 2/2, reports 1/1" in manager.told("STATUS="), "STATUS of all queues"
    )

    before = len(manager.messages)
    reload_from = time.monotonic_ns() // 1000
    program.send(signal.SIGHUP)
    wait_until(lambda: manager.count("READY=1", before) == 1, "READY=1 after the reload")
    [reloading] = [message for message in manager.messages if "RELOADING=1" in message.lines]
    # systemd compares it with the READY=1 that ends the reload: it has to lie between the signal and now, on the same clock.
    [stamp] = [int(line.removeprefix("MONOTONIC_USEC=")) for line in reloading.lines if line.startswith("MONOTONIC_")]
    assert reload_from <= stamp <= time.monotonic_ns() // 1000

    (tmp_path / "client").mkdir()
    enqueue(tmp_path / "client", "emails", "email.send.v1", '{"to": "ann@example.com", "template": "welcome"}')
    silent_mail.settimeout(30)
    call, _ = silent_mail.accept()
    program.send(signal.SIGTERM)
    wait_until(lambda: manager.count("STOPPING=1") == 1, "STOPPING=1")
    draining = len(manager.messages)
    # A drain may take longer than the watchdog's patience.
    wait_until(lambda: manager.count("WATCHDOG=1", draining) >= 2, "two beats while draining")
    assert manager.told("STATUS=")[-1].startswith("stopping, ")
    call.close()
    assert program.exit_code() == 0
    manager.listen()

    assert {message.pid for message in manager.messages} == {program.pid}
    beats = [message.at for message in manager.messages if "WATCHDOG=1" in message.lines]
    assert max(after - earlier for earlier, after in pairwise(beats)) <= WATCHDOG
    assert [line for line in manager.messages[-1].lines if line == "READY=1"] == []


def test_a_program_that_cannot_boot_never_says_that_it_is_ready(
    start: Callable[[], Program], manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHOKAQ_APP", "nowhere:app")
    program = start()
    assert str(program.exit_code()) in Unit("chokaq.service").one("RestartPreventExitStatus").split()
    assert manager.count("READY=1") == 0
    assert "nowhere" in program.tail()
