"""Handlers that stop the event loop or hold the interpreter (C16, C20): the limits find them, their neighbours lose nothing."""

from tests.chaos.fleet import Shape
from tests.chaos.scenario import Scenario


def test_a_child_whose_loop_stands_still_is_killed_and_its_jobs_run_elsewhere(scenario: Scenario) -> None:
    """Nobody can tell which handler it is, so the kill is a crash for all that ran; what was only buffered is not charged."""
    fleet = scenario.begin(Shape(stall_limit="4s"))
    scenario.load(more=[*scenario.plan.of("blocker", 1), *scenario.plan.of("holder", 1)])
    verdict = scenario.finish(allowed=["stall_limit"])
    stalled = fleet.programs[0].events("child_stalled")
    assert len(stalled) >= 1
    assert {event["pid"] for event in stalled} <= set(fleet.deaths())
    # One execution of each of the two was cut short.
    assert verdict.crashed >= 2


def test_a_handler_past_its_hard_limit_costs_its_child_and_nobody_else_anything(scenario: Scenario) -> None:
    """C20: it holds the interpreter, deaf to signals; it stops as timed out, the jobs beside it are handed back uncharged."""
    fleet = scenario.begin()
    scenario.load(more=[*scenario.plan.of("hog", 2), *scenario.plan.lasting(20, 0.8)])
    verdict = scenario.finish(allowed=["hard_limit"])
    assert verdict.crashed == 0
    assert verdict.handed_back > 0
    killed = fleet.programs[0].events("child_killed", reason="hard_limit")
    assert killed
    culprits = {job for event in killed for job in event["culprits"]}
    accepted = scenario.driver.accepted
    hogs = {job_id for job_id, job in accepted.items() if job.kind == "hog"}
    assert hogs - scenario.driver.cancelled <= culprits
    # A neighbour with a short limit of its own has passed it as well by then: its cancellation could not reach it.
    assert {accepted[job_id].kind for job_id in culprits} <= {"hog", "slow"}
