"""When the program is ready, and what it says when it is not (C16, C30)."""

import os
import signal
import socket
from pathlib import Path

import pytest

from .conftest import Start
from .harness import FakeProgram, wait_until

pytestmark = pytest.mark.processes
LIMITS = "supervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms}\n"
TWO = "queues: {alpha: {}, beta: {processes: 2}}\n" + LIMITS


def test_c30_while_the_store_is_away_the_program_is_not_ready_and_everything_lives(
    start: Start, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        program = start(TWO, environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        program.wait("supervisor_ready")
        program.script("alpha", store=False)
        program.script("beta", store=False)
        [event] = program.wait("supervisor_not_ready")
        assert event["problem"].startswith("the store does not answer: ")
        heard: list[str] = []

        def told(status: str) -> bool:
            try:
                while True:
                    heard.append(manager.recv(4_096).decode())
            except BlockingIOError:
                return status in heard

        wait_until(
            lambda: told("STATUS=not ready (the store does not answer: alpha, beta): alpha 1/1, beta 2/2"), "the reason"
        )
        program.script("alpha")
        program.script("beta")
        program.wait("supervisor_ready", 2)
        wait_until(lambda: told("STATUS=ready: alpha 1/1, beta 2/2"), "the end of it")
    assert not program.events("child_killed")
    assert not program.events("child_died")
    assert program.end() == 0


def test_one_child_that_reaches_the_store_is_enough_for_its_queue(start: Start) -> None:
    program = start(TWO)
    program.wait("child_ready", 3)
    [first, _] = program.events("child_ready", queue="beta")
    program.script("beta", store=False, only_pid=first["pid"])
    program.script("alpha", store=False)
    [event] = program.wait("supervisor_not_ready")
    assert event["problem"] == "the store does not answer: alpha"
    assert program.end() == 0


def test_a_queue_without_a_live_child_is_named(start: Start) -> None:
    program = start(TWO.replace("respawn_min: 50ms", "respawn_min: 200ms"))
    program.wait("supervisor_ready")
    [victim] = program.events("child_ready", queue="alpha")
    program.script("alpha", exit=1)
    [event] = program.wait("supervisor_not_ready")
    assert event["problem"] == "no live child: alpha"
    program.script("alpha")
    program.wait("supervisor_ready", 2)
    assert victim["pid"] in {event["pid"] for event in program.events("child_died")}
    program.end()


def test_c30_a_successor_that_waits_for_an_absent_store_is_not_killed_for_it(start: Start) -> None:
    program = start(TWO, environ={"BOOT_TIMEOUT": "1"})
    program.wait("supervisor_ready")
    program.script("alpha", boot="hang", store=False)
    program.script("beta", boot="hang")
    os.kill(program.events("child_ready", queue="alpha")[0]["pid"], signal.SIGKILL)
    [_, waiting] = program.wait("child_forked", 2, queue="alpha")
    os.kill(program.events("child_ready", queue="beta")[0]["pid"], signal.SIGKILL)
    # The one that hangs for no reason was forked later and is killed; the one that waits for the store is not.
    program.wait("boot_timeout")
    assert {event["child"] for event in program.events("boot_timeout")} <= {"beta#0", "beta#1"}
    program.script("alpha")
    program.wait("child_ready", pid=waiting["pid"])
    program.script("beta")
    program.wait("supervisor_ready", 2)
    program.end()


def test_c30_a_program_started_while_the_store_is_away_waits_for_it(start: Start) -> None:
    waits = {"boot": "hang", "store": False}
    program = start(TWO, environ={"BOOT_TIMEOUT": "0.5"}, alpha=waits, beta={"boot": "hang"})
    # Those that hang for no reason are killed; the one that waits for the store is not.
    program.wait("boot_timeout", 2)
    assert {event["child"] for event in program.events("boot_timeout")} == {"beta#0", "beta#1"}
    program.script("beta")
    program.wait("child_ready", 2, queue="beta")
    program.script("alpha")
    program.wait("supervisor_ready")
    assert len(program.events("child_forked", queue="alpha")) == 1
    program.end()


def test_children_that_die_while_they_wait_for_the_store_do_not_stop_the_program(start: Start) -> None:
    program = start("queues: {alpha: {}}\n" + LIMITS, alpha={"boot": "hang", "store": False})
    for deaths in range(1, 5):
        child = program.wait("child_forked", deaths)[-1]
        board_says_away(program, deaths)
        os.kill(child["pid"], signal.SIGKILL)
        program.wait("child_died", deaths)
    program.script("alpha")
    program.wait("supervisor_ready")
    program.end()


def board_says_away(program: FakeProgram, forks: int) -> None:
    """Until the newest child has told that it does not reach the store."""
    waiting = program.control / "waiting"
    pid = program.events("child_forked")[forks - 1]["pid"]
    wait_until(lambda: waiting.exists() and waiting.read_text() == str(pid), "it waits for the store")
