"""A replica whose clock jumps while it works (C35). Needs libfaketime; without it this module does not exist."""

from tests.chaos.clock import FakeClock
from tests.chaos.fleet import PROGRAMS, Shape
from tests.chaos.scenario import Scenario

HOUR = 3_600
FAR = 10 * HOUR
"""Due long after every clock of the scenario."""


def test_a_replica_whose_clock_jumps_loses_nothing_and_runs_nothing_early(scenario: Scenario) -> None:
    """On the server only its own clock decides: a replica's changes nothing at all.

    The embedded store has no other clock than its processes'. Two that disagree by an hour take each other's workers for dead and
    run jobs twice; still no job is lost, every count is right, and none runs before some clock says that it is due.
    """
    clock = FakeClock(scenario.folder)
    fleet = scenario.begin(Shape(processes=1, program=(str(PROGRAMS / "other_clock.py"),)), start=False)
    programs = [fleet.start(clock.environ), fleet.start()]
    for program in programs:
        fleet.wait_ready(program)
    embedded = scenario.lab.kind == "sqlite"
    if embedded:
        scenario.allow(live_workers_may_lose_leases=True, clock_ahead_ms=2 * HOUR * 1000)
    far = scenario.plan.delayed(20, FAR * 1000)
    scenario.load(more=far)
    scenario.disturb(
        [
            ("an hour ahead", lambda: clock.set(HOUR)),
            ("half an hour behind", lambda: clock.set(-HOUR // 2)),
            # In the end far enough for what an hour's jump has put off.
            ("two hours ahead", lambda: clock.set(2 * HOUR)),
        ]
    )
    scenario.quiesce(far=[job.new.id for job in far])
    waiting = {row["Id"] for row in scenario.lab.rows("JobsHot")}
    assert waiting == {job.new.id for job in far} - scenario.driver.cancelled
    session = scenario.store.session()
    answers = session.cancel_jobs(sorted(waiting), "chaos", "the scenario is over")
    session.close()
    scenario.driver.cancels.update({answer.id: answer.result for answer in answers})
    verdict = scenario.finish(allowed=["retired"] if embedded else [])
    if not embedded:
        assert verdict.crashed == verdict.repeated == 0
    assert _clock_was_seen(scenario), "libfaketime had no effect"


def _clock_was_seen(scenario: Scenario) -> bool:
    """Handlers wrote times down that are not the host's."""
    evidence = scenario.evidence()
    true = evidence.wall_minus_mono_ms
    return any(
        abs(run.began_wall_ms - run.began_ns // 1_000_000 - true) > 60_000 for run in evidence.executions.values()
    )
