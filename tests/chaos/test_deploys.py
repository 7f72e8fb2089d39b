"""Deploys under load (C17, C23, C24, C25, C26): nothing is lost, nothing is charged, nothing that had succeeded runs again."""

import os
import signal
import time

from tests.chaos.fleet import BOOT, ENDING, Fleet, Shape
from tests.chaos.scenario import Harm, Scenario
from tests.support.supervised import Program


def test_deploys_under_load_charge_nothing_and_repeat_nothing(scenario: Scenario) -> None:
    """TERM to a whole group with a new replica in its place, a rolling restart, a reload: in a drawn order, twice each."""
    # Handlers are cancelled a second after TERM: those that last longer are handed back.
    fleet = scenario.begin(Shape(replicas=2, processes=1, grace="6s"))
    scenario.load()
    harms: list[Harm] = [
        *[("TERM to the group", lambda: replace(scenario, oldest(fleet)))] * 2,
        *[("USR2", lambda: restart(fleet, newest(fleet)))] * 2,
        *[("HUP", lambda: reload(fleet, newest(fleet)))] * 2,
    ]
    scenario.chance.shuffle(harms)
    scenario.disturb(harms)
    verdict = scenario.finish()
    assert verdict.crashed == verdict.repeated == 0
    assert verdict.handed_back > 0


def oldest(fleet: Fleet) -> Program:
    """The first that still lives."""
    return fleet.living()[0]


def newest(fleet: Fleet) -> Program:
    """The last that was started."""
    return fleet.living()[-1]


def replace(scenario: Scenario, program: Program) -> None:
    """What an orchestrator does: a new replica, ready; then TERM to every process of the old one, in the middle of its jobs."""
    fleet = scenario.fleet
    fleet.wait_ready(fleet.start())
    # More than the others can take, so that the one that has to go has some.
    lasting = scenario.plan.lasting(4 * fleet.shape.workers, 4.0)
    ids = {job.new.id for job in lasting}
    scenario.driver.add(lasting)

    def is_at_work() -> bool:
        now = time.monotonic_ns()
        running = [run for pid in fleet.children(program) for run in fleet.ledger.running(pid)]
        return any(run.job in ids and now - run.began_ns < 2e9 for run in running)

    program.until(is_at_work, "a lasting job that has just begun", BOOT)
    os.killpg(program.pid, signal.SIGTERM)
    assert program.exit_code(ENDING) == 0, program.tail()


def restart(fleet: Fleet, program: Program) -> None:
    """USR2: every child anew, each ready before its predecessor leaves."""
    _renew(fleet, program, signal.SIGUSR2)


def reload(fleet: Fleet, program: Program) -> None:
    """HUP with another number of workers: every child runs with settings that have changed."""
    fleet.configure(workers=fleet.shape.workers + 1)
    _renew(fleet, program, signal.SIGHUP)


def _renew(fleet: Fleet, program: Program, number: signal.Signals) -> None:
    before = set(fleet.children(program))
    program.send(number)
    program.until(
        lambda: len(after := set(fleet.children(program))) == len(before) and not after & before,
        f"new children after {number.name}",
        BOOT + ENDING,
    )
