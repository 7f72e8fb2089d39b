"""One scenario from its first job to its verdict: load, harm at drawn moments, quiet, judgement."""

import os
import random
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from chokaq.lifecycle.states import Pillar
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.chaos.driver import Driver
from tests.chaos.evidence import Evidence, Rules, Standing
from tests.chaos.fleet import Fleet, Shape
from tests.chaos.verifier import Verdict, judge
from tests.chaos.workload import Job, Plan
from tests.support.lab import PILLARS, Lab
from tests.support.polling import wait_until

SEED = "CHOKAQ_CHAOS_SEED"
JOBS = "CHOKAQ_CHAOS_JOBS"
DEFAULT_JOBS = {"sqlite": 300, "sqlserver": 120}
"""For CI: the whole suite takes minutes. The full run takes 10,000 and 2,000."""
SLOW_BOOT = 20.0
"""Seconds added to the leases on the T-SQL server."""
FIRST, LAST = 0.05, 0.75
"""Share of the jobs done, between which harm is done."""
WINDOW = 0.3
"""Share of the jobs that may wait at once: harm meets load to the end."""
SHOWN = 25
"""Broken rules that a failure lists."""

Harm = tuple[str, Callable[[], None]]


def seed() -> int:
    """The one asked for, or a fresh one."""
    wanted = os.environ.get(SEED)
    return int(wanted) if wanted else random.SystemRandom().randrange(10**9)


def job_count(kind: str) -> int:
    """Jobs per scenario on that kind of store."""
    return int(os.environ.get(JOBS) or DEFAULT_JOBS[kind])


class Scenario:
    """The tools of one test."""

    def __init__(self, name: str, folder: Path, store: Store, options: DatabaseSettings, lab: Lab, seed: int) -> None:
        self.name = name
        self.folder = folder
        self.store = store
        self.options = options
        self.lab = lab
        self.seed = seed
        self.chance = random.Random(seed)
        self.jobs = job_count(lab.kind)
        self.plan = Plan(self.chance)
        self.rules = Rules() if lab.kind == "sqlite" else Rules(slack_ms=100, stamp_ms=5_000)
        self.done: list[str] = []
        """The harm done, in order."""
        self.url = options.url
        """Where the workers find the store; a proxy may stand in between."""
        self._fleet: Fleet | None = None
        self._driver: Driver | None = None

    @property
    def patience(self) -> float:
        """Seconds that the work itself may take."""
        return 120 + self.jobs / 15

    @property
    def fleet(self) -> Fleet:
        """The replicas; `begin` makes them."""
        assert self._fleet is not None
        return self._fleet

    @property
    def driver(self) -> Driver:
        """The enqueuing side; `load` starts it."""
        assert self._driver is not None
        return self._driver

    def begin(self, shape: Shape | None = None, *, start: bool = True) -> Fleet:
        """The fleet, started and ready."""
        shape = shape or Shape()
        if self.lab.kind != "sqlite":
            # A child's first calls take seconds there, and until it beats it must not be taken for dead.
            shape = msgspec.structs.replace(shape, zombie_timeout=shape.zombie_timeout + SLOW_BOOT)
        self._fleet = Fleet(self.folder, self.url, shape, self.chance)
        if start:
            self._fleet.start_all()
        return self._fleet

    def load(self, jobs: Sequence[Job] | None = None, *, more: Sequence[Job] = ()) -> Driver:
        """Begin to enqueue: the ordinary mixture (or `jobs`), with `more` mixed in."""
        whole = [*(self.plan.draw(self.jobs) if jobs is None else jobs), *more]
        if more:
            self.chance.shuffle(whole)
        window = max(40, round(self.jobs * WINDOW))
        self._driver = Driver(self.store, self.fleet.ledger, whole, window, random.Random(self.chance.random()))
        self._total = len(whole)
        self._driver.start()
        return self._driver

    def disturb(self, harms: Sequence[Harm]) -> None:
        """Do each of them, in a drawn order of moments, while the jobs are being done."""
        moments = sorted(self.chance.uniform(FIRST, LAST) for _ in harms)
        for moment, (name, harm) in zip(moments, harms, strict=True):
            self.reach(moment)
            self.done.append(f"{moment:.2f} {name}")
            harm()

    def reach(self, share: float) -> None:
        """Wait until that share of the jobs has had a handler end."""
        self._wait(lambda: self.share >= share or self._is_over(), f"{share:.0%} of the jobs")

    @property
    def share(self) -> float:
        """Of the planned jobs, how many have had a handler end."""
        return len(self.fleet.ledger.read().done) / self._total

    def quiesce(self, far: Collection[str] = ()) -> None:
        """Wait until every job has ended, but for those of `far` (ids), which are due too late for that."""
        self.driver.finish(self.patience)
        left = len(set(far) - self.driver.cancelled)
        self._wait(lambda: self.lab.count("JobsHot") <= left, "the end of every job")

    def outlasts_the_leases(self) -> Callable[[], bool]:
        """True once every lease that was not renewed from now on has run out."""
        until = time.monotonic() + self.fleet.shape.zombie_timeout + 2
        return lambda: time.monotonic() > until

    def finish(self, *, allowed: Sequence[str] = ()) -> Verdict:
        """Quiet, a clean drain, and the verdict; `allowed`: why children may have been killed by their own supervisor."""
        self.quiesce()
        self.fleet.drain()
        self.lab.check_invariants()
        verdict = judge(self.evidence())
        faults = [*verdict.faults, *self.fleet.surprises(allowed)]
        if faults:
            shown = "\n  ".join(faults[:SHOWN])
            raise AssertionError(f"{len(faults)} rules broken ({self.repeat})\n  {shown}\n{self.fleet.tails()}")
        self.report(verdict.text)
        return verdict

    def report(self, text: str) -> None:
        """A line that is shown after the run."""
        REPORTS.append(f"{self.name} [{self.lab.kind}] {text}")

    def evidence(self) -> Evidence:
        """Everything as it stands now."""
        standings: dict[str, list[Standing]] = {}
        for pillar, table in PILLARS.items():
            for row in self.lab.rows(table):
                standings.setdefault(row["Id"], []).append(Standing(pillar=Pillar(pillar), row=row))
        host = time.time()
        ahead = round((self.store.now().timestamp() - host) * 1000) if self.lab.kind != "sqlite" else 0
        return Evidence(
            accepted=dict(self.driver.accepted),
            answered=dict(self.driver.answered),
            cancels=dict(self.driver.cancels),
            standings=standings,
            attempts=self.lab.rows("JobAttempts"),
            workers={row["WorkerId"]: row for row in self.lab.rows("Workers")},
            executions=dict(self.fleet.ledger.read().executions),
            deaths=self.fleet.deaths(),
            wall_minus_mono_ms=round((time.time_ns() - time.monotonic_ns()) / 1e6),
            database_minus_host_ms=ahead,
            rules=self.rules,
        )

    @property
    def repeat(self) -> str:
        """How to do it again."""
        return f"{SEED}={self.seed} {JOBS}={self.jobs}; harm: {self.done}"

    def close(self) -> None:
        """End everything that was started."""
        if self._driver is not None:
            self._driver.give_up()
        if self._fleet is not None:
            self._fleet.destroy()

    def allow(self, **changes: object) -> None:
        """Change the rules."""
        self.rules = msgspec.structs.replace(self.rules, **changes)

    def _is_over(self) -> bool:
        return not self.driver.is_alive() and self.lab.count("JobsHot") == 0

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(lambda: self.driver.error is not None or condition(), what, self.patience)
        except AssertionError as error:
            left = self.lab.query("SELECT Id, Type, Status, AttemptCount, LeaseNumber, DueAtUtc FROM {JobsHot}")[:10]
            raise AssertionError(f"{error} ({self.repeat})\n{left}\n{self.fleet.tails()}") from None
        if self.driver.error is not None:
            raise self.driver.error


REPORTS: list[str] = []
"""One line per scenario that came to a good end, shown after the run."""
