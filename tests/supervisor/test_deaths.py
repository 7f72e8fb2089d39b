"""Children that die, cannot boot, or are not heard of (C15, C16, C21)."""

import os
import signal

import pytest

from .conftest import Start
from .harness import alive, wait_until

pytestmark = pytest.mark.processes
ONE = "queues: {alpha: {}, beta: {}}\nsupervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms, boot_timeout: 1s}\n"


def test_only_the_killed_child_is_replaced_and_its_death_is_told_with_signal_memory_and_pulse(start: Start) -> None:
    program = start(ONE)
    program.wait("child_ready", 2)
    [victim] = program.events("child_ready", queue="alpha")
    [bystander] = program.events("child_ready", queue="beta")
    os.kill(victim["pid"], signal.SIGKILL)
    replacement = program.wait("child_ready", 2, queue="alpha")[1]
    program.wait("notice_acknowledged")
    assert replacement["pid"] != victim["pid"]
    assert [event["pid"] for event in program.events("child_ready", queue="beta")] == [bystander["pid"]]
    [notice] = program.notices()
    assert notice["notice"]["cause"] == "crash"
    assert notice["notice"]["signal"] == signal.SIGKILL
    assert notice["notice"]["memory_kb"] == 50_000
    assert notice["notice"]["last_pulse_ms"] < 5_000
    assert program.end() == 0


def test_the_program_is_not_ready_while_a_queue_has_no_live_child(start: Start) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.script("alpha", boot="hang")
    [victim] = program.events("child_ready", queue="alpha")
    os.kill(victim["pid"], signal.SIGKILL)
    program.wait("supervisor_not_ready")
    program.script("alpha", boot="ok")
    program.wait("supervisor_ready", 2)
    assert program.end() == 0


def test_a_child_that_cannot_boot_stops_the_program_with_its_own_exit_code(start: Start) -> None:
    program = start(ONE, alpha={"boot": "fail"})
    assert program.exit_code() == 78
    assert len(program.events("child_forked", queue="alpha")) == 1
    assert "cannot boot: as told" in program.log.read_text()


def test_a_child_that_keeps_dying_before_it_is_ready_stops_the_program(start: Start) -> None:
    program = start(ONE, alpha={"boot": "crash"})
    assert program.exit_code() == 78
    assert len(program.events("child_forked", queue="alpha")) == 3


def test_a_child_that_hangs_while_booting_is_killed_and_tried_again(start: Start) -> None:
    program = start(ONE, alpha={"boot": "hang"})
    program.wait("boot_timeout")
    program.script("alpha", boot="ok")
    program.wait("child_ready", queue="alpha")
    assert program.end() == 0


def test_a_boot_that_is_slow_but_gets_on_is_waited_for(start: Start) -> None:
    program = start(ONE, environ={"BOOT_TIMEOUT": "0.6"}, alpha={"boot": "slow"})
    program.wait("supervisor_ready")
    assert program.events("boot_timeout") == []
    assert program.end() == 0


def test_slow_boots_do_not_stop_a_program_that_has_been_ready(start: Start) -> None:
    program = start(ONE, environ={"BOOT_TIMEOUT": "0.3"})
    program.wait("supervisor_ready")
    program.script("alpha", boot="hang")
    os.kill(program.events("child_ready", queue="alpha")[0]["pid"], signal.SIGKILL)
    program.wait("boot_timeout", 4)
    program.script("alpha", boot="ok")
    program.wait("supervisor_ready", 2)
    assert program.end() == 0


@pytest.mark.parametrize("boot", ["fail", "crash"])
def test_a_child_that_cannot_come_back_is_tried_again_and_never_stops_the_program(start: Start, boot: str) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.script("alpha", boot=boot)
    os.kill(program.events("child_ready", queue="alpha")[0]["pid"], signal.SIGKILL)
    program.wait("child_cannot_boot", 3, child="alpha#0")
    [not_ready] = program.events("supervisor_not_ready")
    assert not_ready["problem"] == "no live child: alpha"
    program.script("alpha")
    program.wait("supervisor_ready", 2)
    assert len(program.events("child_ready", queue="beta")) == 1
    assert program.end() == 0


def test_a_retired_child_is_replaced_at_once(start: Start) -> None:
    program = start(ONE.replace("respawn_min: 50ms, respawn_max: 200ms", "respawn_min: 60s, respawn_max: 60s"))
    program.wait("child_ready", 2)
    program.script("alpha", exit=75)
    program.wait("child_died", queue="alpha")
    program.script("alpha")
    program.wait("child_ready", 2, queue="alpha", timeout=10)
    program.wait("notice_acknowledged")
    assert program.notices()[0]["notice"]["cause"] == "shutdown"
    assert program.end() == 0


def test_a_child_that_drains_without_our_word_is_followed_at_once_and_has_the_grace(start: Start) -> None:
    program = start(ONE.replace("5s", "1s").replace("50ms", "30s").replace("200ms", "30s"), alpha={"term": "linger"})
    program.wait("supervisor_ready")
    [old] = program.events("child_ready", queue="alpha")
    os.kill(old["pid"], signal.SIGTERM)
    program.wait("child_leaves", pid=old["pid"])
    program.wait("child_ready", 2, queue="alpha", timeout=10)
    [killed] = program.wait("child_killed")
    assert (killed["pid"], killed["reason"]) == (old["pid"], "by_itself")
    program.script("alpha")
    program.end()


def test_a_handler_that_ends_its_process_with_exit_code_0_counts_as_a_crash(start: Start) -> None:
    program = start(ONE)
    program.wait("child_ready", 2)
    program.script("alpha", exit=0, silent=True)
    program.wait("child_died", queue="alpha")
    program.script("alpha")
    program.wait("notice_acknowledged")
    assert program.notices()[0]["notice"]["cause"] == "crash"
    assert program.end() == 0


def test_a_new_maintenance_process_gets_every_notice_that_was_not_acknowledged(start: Start) -> None:
    program = start(ONE, maintenance={"acknowledge": False})
    program.wait("child_ready", 2)
    [keeper] = program.wait("maintenance_forked")
    os.kill(program.events("child_ready", queue="alpha")[0]["pid"], signal.SIGKILL)
    wait_until(lambda: len(program.notices()) == 1, "the notice with the first maintenance process")
    os.kill(keeper["pid"], signal.SIGKILL)
    program.wait("maintenance_forked", 2)
    program.script("maintenance", acknowledge=True)
    program.wait("notice_acknowledged", 2)
    # The child's, twice: the first incarnation had taken it without carrying it out; then that incarnation's own.
    numbers = [notice["number"] for notice in program.notices()]
    assert sorted(numbers) == [1, 1, 2]
    assert program.end() == 0


def test_maintenance_is_replaced_during_a_drain_while_notices_are_pending(start: Start) -> None:
    program = start(ONE.replace("5s", "20s"), maintenance={"acknowledge": False})
    program.wait("child_ready", 2)
    program.send(signal.SIGTERM)
    program.wait("child_died", 2)
    os.kill(program.events("maintenance_forked")[0]["pid"], signal.SIGKILL)
    program.wait("maintenance_forked", 2)
    program.script("maintenance", acknowledge=True)
    program.exit_code()
    assert len(program.events("notice_acknowledged")) == 2


def test_a_defect_of_the_supervisor_drains_the_children_and_is_never_exit_code_0(start: Start) -> None:
    program = start(ONE, environ={"BREAK_ONCE_READY": "1"})
    assert program.exit_code() == 70
    pids = [event["pid"] for event in program.events("child_forked")]
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)
    assert "supervisor_failed" in program.log.read_text()


def test_processes_that_nobody_else_waits_for_are_reaped(start: Start) -> None:
    """C23: what PID 1 has to do beside its own work."""
    program = start(ONE, environ={"BECOME_SUBREAPER": "1"})
    [orphan] = program.wait("orphan_reaped")
    assert orphan["pid"] != program.pid
    program.wait("supervisor_ready")
    assert program.end() == 0
