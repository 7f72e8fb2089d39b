"""systemd's protocol over a real socket, by path and by abstract name."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from chokaq.supervisor.notify import Notifier

from .conftest import Start
from .harness import wait_until


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A service manager's socket, and what NOTIFY_SOCKET says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        if request.param == "path":
            name = address = str(tmp_path / "notify")
        else:
            name, address = f"@chokaq-test-{os.getpid()}", f"\0chokaq-test-{os.getpid()}"
        listening.bind(address)
        listening.setblocking(False)
        yield listening, name


def heard(listening: socket.socket) -> list[str]:
    """Every datagram that has arrived."""
    messages = []
    while True:
        try:
            messages.append(listening.recv(4_096).decode())
        except BlockingIOError:
            return messages


def test_every_message_arrives_and_an_unchanged_status_is_sent_once(manager: tuple[socket.socket, str]) -> None:
    listening, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.status("ready: a 1/1")
    notifier.status("ready: a 1/1")
    notifier.ready()
    notifier.reloading()
    notifier.stopping()
    first, second, third, fourth = heard(listening)
    assert (first, second, fourth) == ("STATUS=ready: a 1/1", "READY=1", "STOPPING=1")
    assert third.startswith("RELOADING=1\nMONOTONIC_USEC=")
    notifier.close()
    notifier.ready()
    assert heard(listening) == []


def test_the_watchdog_is_fed_at_half_its_interval_and_only_by_the_process_it_watches(
    manager: tuple[socket.socket, str],
) -> None:
    listening, name = manager
    ours = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())})
    for now in (0.0, 0.5, 0.9, 1.0, 1.5, 2.1):
        ours.beat(now)
    assert heard(listening) == ["WATCHDOG=1"] * 3
    others = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"})
    others.beat(0.0)
    assert heard(listening) == []
    ours.close()
    others.close()


def test_a_manager_with_a_full_buffer_hears_it_later(manager: tuple[socket.socket, str]) -> None:
    listening, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as noise:
        address = name.replace("@", "\0", 1)
        with suppress(BlockingIOError):
            while True:
                noise.sendto(b"x" * 1_000, address)
    notifier.ready()
    assert "READY=1" not in heard(listening)
    notifier.beat(0.0)
    assert heard(listening) == ["READY=1"]
    notifier.close()


@pytest.mark.parametrize("name", ["", "relative", "/nowhere/at/all"])
def test_without_a_manager_nothing_happens(name: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.ready()
    notifier.beat(1.0)
    notifier.close()


@pytest.mark.processes
def test_the_program_tells_its_manager_when_it_is_ready_reloads_and_stops(
    manager: tuple[socket.socket, str], start: Start
) -> None:
    listening, name = manager
    program = start("queues: {alpha: {}}\n", environ={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"})
    messages: list[str] = []

    def told(expected: str, count: int = 1) -> bool:
        messages.extend(heard(listening))
        return messages.count(expected) >= count

    wait_until(lambda: told("READY=1") and told("STATUS=ready: alpha 1/1"), "READY=1")
    program.send(signal.SIGHUP)
    wait_until(lambda: told("READY=1", 2), "READY=1 after the reload")
    assert any(message.startswith("RELOADING=1") for message in messages)
    wait_until(lambda: told("WATCHDOG=1", 2), "two watchdog messages")
    assert program.end() == 0
    assert told("STOPPING=1")
