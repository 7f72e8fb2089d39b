"""Whether a worker lives, can take work, and is well: facts and limits in, verdicts in words out. No clock, no I/O.

Times are seconds. Names of queues and numbers are all that a verdict tells: no job, no address, no text of an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from chokaq.observe.facts import ChildFacts, DatabaseFacts, LagFacts, QueueFacts, SchemaFacts


class Health(StrEnum):
    """A verdict."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """Works, and somebody should look."""
    UNHEALTHY = "unhealthy"


_GRAVITY = list(Health)


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One queue or child within a check."""

    name: str
    status: Health
    says: str
    seconds: float | None = None
    """What was measured, when it is a time."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one thing."""

    name: str
    status: Health
    says: str
    """In words, with what to do where that is not plain."""
    seconds: float | None = None
    """What was measured, when it is a time."""
    limits: dict[str, float | None] = {}
    """Seconds beyond which it is `degraded` or `unhealthy`; None: never."""
    parts: Sequence[Part] = ()
    took: float | None = None
    """How long it took to find out."""
    age: float | None = None
    """How long ago that was; None: just now."""


def worst(checks: Iterable[Check | Part]) -> Health:
    """The gravest verdict of all; healthy when there is none."""
    return max((check.status for check in checks), key=_GRAVITY.index, default=Health.HEALTHY)


def judge_supervisor(silent: float | None, limit: float) -> Check:
    """The supervisor has looked at its children lately. `silent`: since it did; None: it never has."""
    limits: dict[str, float | None] = {"unhealthy": limit}
    if silent is None:
        says, status = "the supervisor has not looked at its children yet", Health.UNHEALTHY
    elif silent > limit:
        says, status = f"the supervisor has stood still for {_time(silent)}", Health.UNHEALTHY
    else:
        says, status = f"the supervisor looked at its children {_time(silent)} ago", Health.HEALTHY
    return Check(name="supervisor", status=status, says=says, seconds=silent, limits=limits)


def judge_phase(phase: str | None) -> Check:
    """A worker that stops takes no new work. `phase`: starting, running or stopping; None: the supervisor has not said."""
    match phase:
        case None:
            status, says = Health.UNHEALTHY, "the supervisor has not told of its children"
        case "stopping":
            status, says = Health.UNHEALTHY, "the worker drains and ends: it takes no new work"
        case "starting":
            status, says = Health.HEALTHY, "the worker is starting"
        case _:
            status, says = Health.HEALTHY, "the worker takes work"
    return Check(name="phase", status=status, says=says)


def judge_workers(queues: Sequence[QueueFacts], heartbeat_timeout: float) -> Check:
    """Every queue has a live child, and preferably all that it should have."""
    parts = [_queue_part(queue, heartbeat_timeout) for queue in queues]
    without = [part.name for part in parts if part.status is Health.UNHEALTHY]
    short = [part.name for part in parts if part.status is Health.DEGRADED]
    if not queues:
        status, says = Health.UNHEALTHY, "no queue is served"
    elif without:
        status, says = Health.UNHEALTHY, f"without a live child: {', '.join(without)}"
    elif short:
        status, says = Health.DEGRADED, f"with fewer live children than wanted: {', '.join(short)}"
    else:
        status, says = Health.HEALTHY, "every queue has its live children"
    return Check(name="workers", status=status, says=says, limits={"unhealthy": heartbeat_timeout}, parts=parts)


def judge_reach(queues: Sequence[QueueFacts], heartbeat_timeout: float) -> Check:
    """A live child of every queue reaches the database: what children say of it themselves."""
    parts = []
    for queue in queues:
        # Those that boot tell, too: one that waits for its database from the start is not ready for that reason.
        live = [child for child in queue.children if is_live(child, heartbeat_timeout)]
        heard = live or [child for child in queue.children if child.here and not child.ready]
        if heard and not any(child.reaches_store for child in heard):
            parts.append(
                Part(name=queue.name, status=Health.UNHEALTHY, says="the database does not answer its children")
            )
    if parts:
        says = f"the database does not answer the children of {', '.join(part.name for part in parts)}"
    else:
        says = "the database answers the children"
    return Check(name="reach", status=worst(parts), says=says, parts=parts)


def judge_loops(queues: Sequence[QueueFacts], loop_stalled: float) -> Check:
    """No event loop of a ready child stands still."""
    ready = [child for queue in queues for child in queue.children if child.here and child.ready]
    found = [(max(child.silent or 0.0, child.lag), child.name) for child in ready]
    parts = [
        Part(name=name, status=Health.DEGRADED, says=f"its event loop stands still for {_time(late)}", seconds=late)
        for late, name in found
        if late > loop_stalled
    ]
    longest = max(found, default=(None, ""))[0]
    says = f"stalled: {', '.join(part.name for part in parts)}" if parts else "every event loop turns"
    limits: dict[str, float | None] = {"degraded": loop_stalled}
    return Check(name="loops", status=worst(parts), says=says, seconds=longest, limits=limits, parts=parts)


def judge_maintenance(child: ChildFacts) -> Check:
    """The maintenance process of a database runs: without it lost jobs are not rescued here, while work goes on."""
    if child.here and child.ready:
        return Check(name="maintenance", status=Health.HEALTHY, says="the maintenance process runs")
    says = "the maintenance process is still booting" if child.here else "no maintenance process runs"
    return Check(name="maintenance", status=Health.DEGRADED, says=says)


def judge_database(facts: DatabaseFacts, timeout: float) -> Check:
    """The database has answered the last question, within the time."""
    limits: dict[str, float | None] = {"unhealthy": timeout}
    if facts.waiting is not None and facts.waiting >= timeout:
        return Check(
            name="database",
            status=Health.UNHEALTHY,
            says=f"the database has not answered for {_time(facts.waiting)}",
            seconds=facts.waiting,
            limits=limits,
        )
    if facts.answered and facts.took is not None:
        status = Health.HEALTHY if facts.took <= timeout else Health.UNHEALTHY
        says = f"the database answered within {_time(facts.took)}"
    elif facts.failed:
        status, says = Health.UNHEALTHY, "the database does not answer; the log says why"
    else:
        status, says = Health.UNHEALTHY, "the database has not answered yet"
    return Check(name="database", status=status, says=says, seconds=facts.took, limits=limits)


def judge_schema(facts: SchemaFacts) -> Check:
    """The database's schema is one that this program works with. Not known: what the children found when they booted holds."""
    if not facts.known:
        return Check(
            name="schema", status=Health.HEALTHY, says="the schema has not been looked at; the children boot on it"
        )
    if facts.fits:
        return Check(name="schema", status=Health.HEALTHY, says=f"version {facts.live}")
    versions = "" if facts.needed is None else f" (version {_or_none(facts.live)}, this program needs {facts.needed})"
    says = f"the schema does not fit this program{versions}: `chokaq schema check` says more"
    return Check(name="schema", status=Health.UNHEALTHY, says=says)


def judge_lag(
    queues: Sequence[LagFacts] | None, degraded: float | None, unhealthy: float | None, exempt: Sequence[str] = ()
) -> Check:
    """No queue of this worker lets its due jobs wait for long. A paused or inactive queue waits by somebody's will.

    None: the database has not told.
    """
    limits = {"degraded": degraded, "unhealthy": unhealthy}
    if queues is None:
        return Check(
            name="queue_lag", status=Health.DEGRADED, says="not known: the database has not told", limits=limits
        )
    parts = [_lag_part(queue, degraded, unhealthy, queue.name in exempt) for queue in queues]
    late = [part for part in parts if part.status is not Health.HEALTHY]
    longest = max((queue.oldest_due or 0.0 for queue in queues if queue.held is None), default=0.0)
    says = "no due job waits for long"
    if late:
        says = "; ".join(f"{part.name}: {part.says}" for part in late)
    return Check(name="queue_lag", status=worst(parts), says=says, seconds=longest, limits=limits, parts=parts)


def together(checks: Mapping[str, Check]) -> Check:
    """The same check of several databases as one: what each of them says, or the parts that they are made of."""
    if len(checks) == 1:
        return next(iter(checks.values()))
    ill = [f"{name}: {check.says}" for name, check in checks.items() if check.status is not Health.HEALTHY]
    parts: list[Part] = []
    for name, check in checks.items():
        whole = Part(name=name, status=check.status, says=check.says, seconds=check.seconds)
        parts += check.parts or [whole]
    first = next(iter(checks.values()))
    return msgspec.structs.replace(
        first,
        status=worst(checks.values()),
        says="; ".join(ill) or f"well in each of the databases {', '.join(checks)}",
        seconds=max((check.seconds for check in checks.values() if check.seconds is not None), default=None),
        parts=parts,
        took=max((check.took for check in checks.values() if check.took is not None), default=None),
        age=max((check.age for check in checks.values() if check.age is not None), default=None),
    )


def is_live(child: ChildFacts, heartbeat_timeout: float) -> bool:
    """True for a child that takes work."""
    return child.here and child.ready and child.silent is not None and child.silent <= heartbeat_timeout


def _queue_part(queue: QueueFacts, heartbeat_timeout: float) -> Part:
    live = sum(is_live(child, heartbeat_timeout) for child in queue.children)
    wanted = len(queue.children)
    says = f"{live} of {wanted} live"
    silent = [child for child in queue.children if child.here and child.ready and not is_live(child, heartbeat_timeout)]
    booting = sum(child.here and not child.ready for child in queue.children)
    if silent:
        says += f", {len(silent)} not heard of for {_time(max(child.silent or 0.0 for child in silent))}"
    if booting:
        says += f", {booting} booting"
    status = Health.UNHEALTHY if not live else Health.HEALTHY if live == wanted else Health.DEGRADED
    return Part(name=queue.name, status=status, says=says)


def _lag_part(queue: LagFacts, degraded: float | None, unhealthy: float | None, exempt: bool) -> Part:
    lag = queue.oldest_due or 0.0
    says = "nothing is due" if queue.oldest_due is None else f"the oldest due job has waited for {_time(lag)}"
    status = Health.HEALTHY
    if queue.held is not None:
        says = f"{queue.held}: {says}"
    elif not exempt and unhealthy is not None and lag > unhealthy:
        status = Health.UNHEALTHY
    elif not exempt and degraded is not None and lag > degraded:
        status = Health.DEGRADED
    return Part(name=queue.name, status=status, says=says, seconds=queue.oldest_due)


def _or_none(version: int | None) -> str:
    return "none" if version is None else str(version)


def _time(seconds: float) -> str:
    """A duration in words: the precision that matters at its size."""
    if seconds < 1:
        return f"{seconds * 1000:.{0 if seconds >= 0.01 else 1}f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
