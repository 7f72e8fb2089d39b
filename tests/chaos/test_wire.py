"""What can happen between a fleet and its server (C11, C27, C30): connections cut, stalled and refused, deadlocks, a restart."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.chaos.fleet import BOOT, Fleet, Shape
from tests.chaos.scenario import Scenario
from tests.support import mssql, stores
from tests.support.proxy import Proxy

STORE = "sqlserver"
RESTART = "CHOKAQ_TEST_SQLSERVER_RESTART"
"""Names a shell command that restarts the server; without it the scenario does not exist."""
MAY_CRASH = "CHOKAQ_TEST_SQLSERVER_MAY_CRASH"
"""Set when nobody else uses the server: the deadlocks exist only then, since they can bring Babelfish down as a whole."""
SHAPE = Shape(processes=1, command_timeout="15s")


@pytest.fixture
def proxy(scenario: Scenario) -> Iterator[Proxy]:
    """Between the workers and the server; the driver and the judge go straight."""
    parts = urlsplit(stores.live_url() or "")
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 1433)
    login = parts.netloc.rpartition("@")[0]
    scenario.url = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{proxy.port}"))
    yield proxy
    scenario.close()
    proxy.close()


def outage(fleet: Fleet) -> int:
    """How often the fleet's lanes have said that the store is away."""
    return sum(len(program.events("store_unavailable")) for program in fleet.programs)


def test_cut_connections_lose_no_outcome_and_repeat_none(scenario: Scenario, proxy: Proxy) -> None:
    """C11: whether the cut call was committed is settled by asking again; no handler runs again for it."""
    scenario.begin(SHAPE)
    scenario.load()
    cut: list[int] = []
    scenario.disturb([("cut every connection", lambda: cut.append(proxy.cut()))] * 6)
    verdict = scenario.finish()
    assert sum(cut) > 0
    assert verdict.crashed == verdict.repeated == verdict.handed_back == 0


def test_a_stalled_link_is_given_up_and_the_work_resumes(scenario: Scenario, proxy: Proxy) -> None:
    """C30: nothing answers, nothing refuses; every lane notices by itself, and running jobs stay whose they are."""
    fleet = scenario.begin(SHAPE)
    scenario.load()

    def stall() -> None:
        before, ready = outage(fleet), len(fleet.programs[0].events("supervisor_ready"))
        proxy.stall()
        fleet.programs[0].until(lambda: outage(fleet) >= before + 2, "lanes that notice", BOOT)
        fleet.programs[0].wait("supervisor_not_ready", timeout=BOOT)
        proxy.flow()
        fleet.wait_ready(fleet.programs[0], ready + 1)

    scenario.disturb([("stall", stall)])
    verdict = scenario.finish()
    assert verdict.crashed == verdict.repeated == verdict.handed_back == 0


def test_a_server_without_connections_left_is_waited_for(scenario: Scenario, proxy: Proxy) -> None:
    """C30: those there were are cut, new ones are refused for longer than the leases last; nobody is judged afterwards."""
    fleet = scenario.begin(Shape(processes=1, command_timeout="15s", zombie_timeout=6.0))
    scenario.load(more=scenario.plan.lasting(8, 3.0))

    def refuse() -> None:
        ready = len(fleet.programs[0].events("supervisor_ready"))
        proxy.refuse()
        proxy.cut()
        outlasted = scenario.outlasts_the_leases()
        fleet.programs[0].wait("supervisor_not_ready", timeout=BOOT)
        fleet.programs[0].until(outlasted, "the end of the leases")
        proxy.refuse(False)
        fleet.wait_ready(fleet.programs[0], ready + 1)

    scenario.disturb([("refuse connections", refuse)])
    verdict = scenario.finish()
    assert proxy.refused > 0
    assert verdict.crashed == verdict.repeated == verdict.handed_back == 0


if os.environ.get(MAY_CRASH):

    def test_deadlocks_with_a_foreign_session_cost_nobody_an_outcome(scenario: Scenario) -> None:
        """C27: a stranger locks hot rows from the highest id down, the procedures from the lowest up.

        It rolls back, so that it changes no row itself: Babelfish damages the memory of a session that has waited for a row which
        another one then changed (docs/unproven.md). The workers' own lanes can still do that to each other here: of five runs on
        Babelfish four passed, and one ended with a crash of the server. A link repeats in silence when it was the victim, so the
        stranger's own defeats are what can be counted.
        """
        scenario.begin(Shape(processes=2))
        scenario.load()
        stranger = Stranger(scenario)
        stranger.start()
        try:
            scenario.quiesce()
        finally:
            stranger.stop()
        verdict = scenario.finish()
        scenario.report(f"the stranger locked {stranger.rounds} times and was the victim {stranger.victim} times")
        assert stranger.rounds > 0
        assert verdict.crashed == verdict.repeated == verdict.handed_back == 0


class Stranger(threading.Thread):
    """An operator's ad-hoc session with no manners: locks hot rows downwards, one by one, in one transaction, then lets go."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(daemon=True)
        self.rounds = self.victim = 0
        self._table = scenario.lab.table("JobsHot")
        self._url = scenario.options.url
        self._stopped = threading.Event()

    def run(self) -> None:
        """Until stopped; every error of the server ends a transaction, not the stranger."""
        import pyodbc

        connection = mssql.connect(self._url, autocommit=False)
        try:
            while not self._stopped.wait(0.01):
                try:
                    rows = connection.execute(f"SELECT TOP 40 Id FROM {self._table} ORDER BY Id DESC").fetchall()
                    for (job_id,) in rows:
                        connection.execute(f"UPDATE {self._table} SET Tags = 'seen' WHERE Id = ?", job_id)
                    connection.rollback()
                    self.rounds += bool(rows)
                except pyodbc.Error:
                    self.victim += 1
                    try:
                        connection.rollback()
                    except pyodbc.Error:
                        # The server is gone; whoever waits for the workers will say so.
                        return
        finally:
            connection.close()

    def stop(self) -> None:
        """End it."""
        self._stopped.set()
        self.join(60)
        assert not self.is_alive(), "the stranger hangs in a lock"


if os.environ.get(RESTART):

    def test_a_restarted_server_costs_no_job_and_no_worker(scenario: Scenario) -> None:
        """C30: away for as long as it takes; the same children resume when it is back."""
        fleet = scenario.begin(Shape(replicas=2, processes=1, command_timeout="15s"))
        scenario.load()
        children = {event["pid"] for program in fleet.programs for event in program.events("child_forked")}

        def restart() -> None:
            before = outage(fleet)
            subprocess.run(os.environ[RESTART], shell=True, check=True, timeout=300)
            back = time.monotonic_ns()
            scenario.lab.reconnect()
            fleet.programs[0].until(lambda: outage(fleet) > before, "lanes that notice", BOOT)
            runs = fleet.ledger.executions
            fleet.programs[0].until(
                lambda: any(run.began_ns > back for run in list(fleet.ledger.read().executions.values())),
                "a handler that begins after the restart",
                300,
            )
            first = min(run.began_ns for run in runs.values() if run.began_ns > back)
            scenario.report(f"the first handler began {(first - back) / 1e9:.1f} s after the restart command had ended")

        scenario.disturb([("restart the server", restart)])
        verdict = scenario.finish()
        assert verdict.crashed == verdict.repeated == verdict.handed_back == 0
        assert {event["pid"] for program in fleet.programs for event in program.events("child_forked")} == children
