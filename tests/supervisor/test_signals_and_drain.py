"""TERM, INT, the grace, the second signal, the whole group (C23, C24)."""

import os
import signal

import pytest

from .conftest import Start
from .harness import alive

pytestmark = pytest.mark.processes
TWO = "queues: {alpha: {}, beta: {processes: 2}}\nsupervisor: {shutdown_grace: 10s, respawn_min: 50ms}\n"
SHORT = "queues: {alpha: {}}\nsupervisor: {shutdown_grace: 2s, respawn_min: 50ms}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_drain_ends_with_exit_code_0_and_leaves_no_process(start: Start, number: signal.Signals) -> None:
    program = start(TWO)
    pids = {event["pid"] for event in program.wait("child_ready", 3)}
    program.wait("supervisor_ready")
    assert program.end(number) == 0
    assert len(pids) == 3
    assert not any(alive(pid) for pid in pids)
    assert [notice["notice"]["cause"] for notice in program.notices()] == ["shutdown"] * 3


def test_term_to_the_whole_group_is_harmless(start: Start) -> None:
    # The children may have ended before the supervisor gets its own TERM: a replacement is not due so soon.
    program = start(TWO.replace("50ms", "20s"))
    program.wait("child_ready", 3)
    program.wait("maintenance_ready")
    os.killpg(program.pid, signal.SIGTERM)
    assert program.exit_code() == 0
    assert len(program.notices()) == 3
    assert not program.events("child_killed")


def test_a_child_that_does_not_end_is_killed_within_the_grace_and_the_exit_code_is_not_0(start: Start) -> None:
    program = start(SHORT, alpha={"term": "ignore"})
    program.wait("child_ready")
    assert program.end() == 1
    [notice] = program.notices()
    assert notice["notice"]["cause"] == "shutdown"
    assert notice["notice"]["signal"] == signal.SIGKILL


def test_a_second_signal_within_a_second_is_the_same_wish(start: Start) -> None:
    program = start(TWO, alpha={"term": "ignore"})
    program.wait("child_ready", 3)
    program.send(signal.SIGTERM)
    program.wait("signal", name="SIGTERM")
    program.send(signal.SIGINT)
    program.wait("signal", name="SIGINT")
    program.script("alpha", term="exit", exit=0)
    assert program.exit_code() == 0
    assert not program.events("second_signal")


def test_a_second_signal_after_a_second_kills_the_children_and_their_leases_are_still_handed_back(start: Start) -> None:
    program = start(TWO.replace("10s", "60s"), alpha={"term": "ignore"})
    program.wait("child_ready", 3)
    program.send(signal.SIGTERM)
    program.wait("child_died", 2)
    # Signals are repeated until one is late enough to count; only the clock of the other process decides.
    while not program.events("second_signal"):
        count = len(program.events("signal"))
        program.send(signal.SIGTERM)
        program.wait("signal", count + 1)
    assert program.exit_code() == 1
    assert [notice["notice"]["cause"] for notice in program.notices()] == ["shutdown"] * 3


def test_maintenance_ends_last_and_only_when_every_notice_is_acknowledged(start: Start) -> None:
    program = start(TWO, maintenance={"acknowledge": False})
    program.wait("child_ready", 3)
    program.send(signal.SIGTERM)
    program.wait("child_died", 3)
    assert not program.events("maintenance_died")
    program.script("maintenance", acknowledge=True)
    assert program.exit_code() == 0
    assert len(program.events("notice_acknowledged")) == 3


def test_notices_that_nobody_takes_make_the_end_unclean_but_do_not_outlast_the_grace(start: Start) -> None:
    program = start(SHORT, maintenance={"acknowledge": False})
    program.wait("child_ready")
    assert program.end(timeout=10) == 1
    assert program.events("maintenance_killed")


def test_a_crash_while_draining_is_not_exit_code_0(start: Start) -> None:
    """C15."""
    program = start(TWO, alpha={"term": "ignore"})
    program.wait("child_ready", 3)
    program.send(signal.SIGTERM)
    program.wait("stopping")
    [victim] = program.events("child_ready", queue="alpha")
    os.kill(victim["pid"], signal.SIGKILL)
    assert program.exit_code() == 1
    assert {"crash", "shutdown"} == {notice["notice"]["cause"] for notice in program.notices()}
