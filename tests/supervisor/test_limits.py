"""The hard limit and the stall limit (C20): what a handler that cannot be stopped costs, and whom."""

import signal

import pytest

from .conftest import Start

pytestmark = pytest.mark.processes
CONFIG = """
queues:
  alpha: {hard_limit_grace: 1s, stall_limit: 1s}
  beta: {}
supervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms}
"""
CULPRIT = "C" * 26
NEIGHBOUR = "N" * 26


def test_a_handler_past_its_hard_deadline_costs_its_child_and_only_it_is_blamed(start: Start) -> None:
    program = start(CONFIG, alpha={"running": [[CULPRIT, 3, 0.5], [NEIGHBOUR, 4, 1e6]], "term": "ignore"})
    program.wait("hard_limit")
    program.script("alpha", running=[[CULPRIT, 3, 1e6], [NEIGHBOUR, 4, 1e6]], term="ignore")
    # Its successor is there before it is killed: the queue goes on while the others use the grace.
    program.wait("child_ready", 2, queue="alpha")
    [dead] = program.wait("child_died")
    assert dead["signal"] == signal.SIGKILL
    program.wait("notice_acknowledged")
    notice = program.notices()[0]["notice"]
    assert notice["cause"] == "limit"
    assert notice["culprits"] == [{"id": CULPRIT, "lease": 3}]
    program.script("alpha")
    program.end()


def test_a_handler_that_ends_within_the_grace_costs_nobody_anything(start: Start) -> None:
    program = start(CONFIG, alpha={"running": [[CULPRIT, 3, 0.3]]})
    program.wait("hard_limit")
    program.script("alpha")
    [dead] = program.wait("child_died")
    assert dead["exit_code"] == 0
    program.wait("child_ready", 2, queue="alpha")
    program.wait("notice_acknowledged")
    assert program.notices()[0]["notice"]["cause"] == "shutdown"
    assert program.end() == 0


def test_a_stalled_child_is_killed_and_counts_as_a_crash_when_nobody_can_be_blamed(start: Start) -> None:
    program = start(CONFIG, alpha={"running": [[NEIGHBOUR, 1, 1e6]], "stalled": True})
    program.wait("child_stalled")
    program.script("alpha")
    program.wait("notice_acknowledged")
    notice = program.notices()[0]["notice"]
    assert notice["cause"] == "crash"
    assert notice.get("culprits", []) == []
    assert notice["last_pulse_ms"] >= 1_000
    program.wait("child_ready", 2, queue="alpha")
    assert program.end() == 0


def test_a_stalled_child_whose_handler_is_past_its_deadline_has_its_culprit(start: Start) -> None:
    program = start(
        CONFIG.replace("1s, stall", "60s, stall"),
        alpha={"running": [[CULPRIT, 1, 0.2], [NEIGHBOUR, 1, 1e6]], "stalled": True, "term": "ignore"},
    )
    program.wait("child_stalled")
    program.script("alpha")
    program.wait("notice_acknowledged")
    notice = program.notices()[0]["notice"]
    assert notice["cause"] == "limit"
    assert notice["culprits"] == [{"id": CULPRIT, "lease": 1}]
    assert program.end() == 0


def test_the_whole_group_may_be_stopped_and_continued_without_anybody_being_killed(start: Start) -> None:
    program = start(CONFIG)
    program.wait("child_ready", 2)
    program.freeze(6.0)
    program.wait("supervisor_stood_still")
    program.send(signal.SIGUSR2)
    program.wait("child_died", 2)
    assert not program.events("child_killed")
    assert program.end() == 0
