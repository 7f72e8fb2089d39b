"""SIGKILL of everything a fleet consists of, under load (C1, C2, C3, C8, C9, C10, C13, C15, C21)."""

import signal

from tests.chaos.fleet import Shape
from tests.chaos.scenario import Scenario


def test_children_killed_at_random_lose_nothing_and_poison_is_stopped(scenario: Scenario) -> None:
    """C1, C8, C10, C13, C15: each killed child's jobs come back at once, the ones that kill their process do not for ever."""
    fleet = scenario.begin()
    scenario.load(more=scenario.plan.of("poison", 2))
    scenario.disturb([("kill a child", fleet.kill_child)] * 5)
    verdict = scenario.finish()
    # Two jobs of poison crashed twice each, at least.
    assert verdict.crashed >= 4
    assert len(fleet.killed) == 5


def test_killed_maintenance_is_replaced_and_deaths_around_it_are_still_told(scenario: Scenario) -> None:
    """C2: whoever rescues may die as well; the supervisor remembers what has not been carried out."""
    fleet = scenario.begin()
    scenario.load()

    def kill_both() -> None:
        fleet.kill_maintenance()
        fleet.kill_child()

    def kill_both_the_other_way_round() -> None:
        fleet.kill_child()
        fleet.kill_maintenance()

    scenario.disturb(
        [("maintenance, then a child", kill_both), ("a child, then maintenance", kill_both_the_other_way_round)] * 2
    )
    scenario.finish()


def test_orphans_of_a_killed_supervisor_end_by_themselves_and_charge_nothing(scenario: Scenario) -> None:
    """C3, C24, C26: their jobs finish or go back; a replica of a new name takes over."""
    # An orphan cancels its handlers a second after its supervisor's death: those that last longer are handed back.
    fleet = scenario.begin(Shape(grace="6s"))
    scenario.load()

    def kill_a_supervisor() -> None:
        [program] = fleet.living()
        lasting = scenario.plan.lasting(8, 5.0)
        scenario.driver.add(lasting)
        first = lasting[0].new.id
        program.until(lambda: fleet.ledger.has_begun(first), "a lasting job at work", scenario.patience)
        fleet.kill_supervisor(program)
        fleet.wait_ready(fleet.start())

    scenario.disturb([("kill the supervisor", kill_a_supervisor)] * 2)
    verdict = scenario.finish()
    assert verdict.crashed == verdict.repeated == 0
    assert verdict.handed_back > 0


def test_a_replica_that_is_gone_as_a_whole_is_rescued_by_the_other(scenario: Scenario) -> None:
    """C1, C3, C9: nobody is left to report its deaths, so the leases run out; only the dead are judged by it."""
    fleet = scenario.begin(Shape(replicas=2, processes=1, zombie_timeout=8.0))
    long_ones = scenario.plan.of("long", 30)
    scenario.load(more=long_ones)

    def kill_a_replica() -> None:
        program = scenario.chance.choice(fleet.living())
        program.until(
            lambda: any(fleet.ledger.running(pid) for pid in fleet.children(program)), "a handler at work", 60
        )
        fleet.kill_replica(program)

    scenario.disturb([("kill a replica", kill_a_replica)])
    verdict = scenario.finish()
    assert verdict.crashed > 0
    [survivor] = [program for program in fleet.programs if program.pid not in fleet.killed]
    assert survivor.process.returncode == 0
    assert signal.SIGKILL.value == -next(p for p in fleet.programs if p is not survivor).process.returncode
