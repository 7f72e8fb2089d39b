"""A known set of jobs, drawn from a seed: what they do, when they are due, and where the rules let them end."""

import random
from collections.abc import Mapping

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope
from chokaq.store.records import NewJob
from tests.support.ids import new_id

MAIN, SIDE = "main", "side"
"""The queues: most jobs go to the first."""
MAX_ATTEMPTS, CRASH_LIMIT = 30, 12
"""So many that what a scenario does to a job does not use them up; the kinds below have their own."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A type of chaosapp and what becomes of its jobs when nobody disturbs them."""

    status: JobStatus = JobStatus.SUCCEEDED
    reason: FailureReason | None = None
    max_attempts: int = MAX_ATTEMPTS
    crash_limit: int = CRASH_LIMIT
    on_crash: str = "retry"
    weight: float = 0.0
    """Share of an ordinary workload."""


KINDS: Mapping[str, Kind] = {
    "quick": Kind(weight=56),
    "long": Kind(weight=12),
    "thread": Kind(weight=4),
    "flaky": Kind(weight=10),
    "snooze": Kind(weight=6),
    "fragile": Kind(weight=4, on_crash="dead_letter"),
    "fatal": Kind(weight=3, status=JobStatus.FAILED, reason=FailureReason.FATAL_ERROR),
    "exhausted": Kind(weight=2, status=JobStatus.FAILED, reason=FailureReason.TRANSIENT, max_attempts=2),
    "throttled": Kind(weight=2, status=JobStatus.FAILED, reason=FailureReason.THROTTLED, max_attempts=2),
    "slow": Kind(weight=1, status=JobStatus.FAILED, reason=FailureReason.TIMEOUT),
    "poison": Kind(status=JobStatus.ZOMBIE, reason=FailureReason.POISON, crash_limit=2),
    "blocker": Kind(),
    "holder": Kind(),
    "hog": Kind(status=JobStatus.FAILED, reason=FailureReason.TIMEOUT),
}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One enqueue of the plan."""

    new: NewJob
    kind: str
    key: str | None = None


class Plan:
    """Draws jobs; the same seed draws the same kinds, delays and keys (ids differ)."""

    def __init__(self, chance: random.Random, *, payload_bytes: int = 0, longest: float = 0.4) -> None:
        """`payload_bytes`: ballast in every payload; `longest`: seconds of the longest handler."""
        self._chance = chance
        self._ballast = "x" * payload_bytes
        self._longest = longest
        self._keys = 0

    def draw(self, count: int) -> list[Job]:
        """`count` enqueues of the ordinary mixture; about one in twelve repeats a key."""
        names, weights = list(KINDS), [kind.weight for kind in KINDS.values()]
        return [self._one(name) for name in self._chance.choices(names, weights, k=count)]

    def of(self, kind: str, count: int, queue: str = MAIN) -> list[Job]:
        """`count` jobs of one kind, due at once, without keys."""
        return [Job(new=self._new(kind, queue=queue), kind=kind) for _ in range(count)]

    def lasting(self, count: int, seconds: float) -> list[Job]:
        """Jobs whose handlers take that long."""
        payload = msgspec.json.encode({"seconds": seconds}).decode()
        return [Job(new=self._new("long", payload=payload), kind="long") for _ in range(count)]

    def delayed(self, count: int, delay_ms: int) -> list[Job]:
        """Quick jobs for later."""
        return [Job(new=self._new("quick", delay_ms=delay_ms), kind="quick") for _ in range(count)]

    def _one(self, kind: str) -> Job:
        chance = self._chance
        delay_ms = chance.randint(50, 3_000) if chance.random() < 0.15 else 0
        key, scope = None, KeyScope.ACTIVE
        if kind in ("quick", "long") and chance.random() < 0.2:
            # Half of them take a key that a job shortly before them has taken.
            self._keys += chance.random() < 0.5
            scope = KeyScope.RETAINED if self._keys % 2 else KeyScope.ACTIVE
            key = f"key-{self._keys}"
        queue = SIDE if chance.random() < 0.2 else MAIN
        new = self._new(
            kind,
            queue=queue,
            delay_ms=delay_ms,
            priority=chance.choice([0, 10, 10, 10, 50]),
            idempotency_key=key,
            key_scope=scope,
        )
        return Job(new=new, kind=kind, key=key)

    def _new(self, kind: str, queue: str = MAIN, **fields: object) -> NewJob:
        chance = self._chance
        facts: dict[str, object] = {"ballast": self._ballast} if self._ballast else {}
        if kind in ("long", "fragile"):
            facts["seconds"] = round(chance.uniform(0.05, self._longest), 3)
        elif kind == "thread":
            facts["seconds"] = round(chance.uniform(0.0, 0.05), 3)
        elif kind == "flaky":
            facts["fails"] = chance.randint(1, 3)
        elif kind == "snooze":
            facts["times"] = chance.randint(1, 2)
        own = {"queue": queue, "type_key": f"chaos.{kind}", "payload": msgspec.json.encode(facts).decode()}
        return msgspec.convert({"id": new_id(), **own, **fields}, NewJob)
