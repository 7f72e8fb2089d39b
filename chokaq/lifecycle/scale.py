"""How many replicas a queue wants: from lag and running work against capacity. Pure; GetScaleRecommendation says it in T-SQL.

Two thresholds with room between them: as long as the load does not leave that room the answer is the present number, so it does not
swing. It rises only while jobs wait too long, and falls only when none has waited too long for five minutes.
"""

from typing import Literal

import msgspec

Unit = Literal["replica", "process"]
Reason = Literal["inactive", "paused", "circuit", "fleet_cap", "lag", "idle", "steady", "minimum", "maximum"]
HOLDS: tuple[Reason, ...] = ("inactive", "paused", "circuit", "fleet_cap")
"""Reasons to keep the present number."""
MAX_REPLICAS = 10_000
MAX_HANDLERS = 1_000_000
DAY_MS = 86_400_000
LEAST_CATCH_UP_MS = 1_000
WINDOW_MS = 300_000
"""How far back run times and lags are looked at."""


class ScaleBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller knows and wants."""

    min_replicas: int = 0
    max_replicas: int = 100
    target_lag_ms: int = 5_000
    """A due job may wait that long."""
    catch_up_ms: int = 60_000
    """What waits is to be worked off within this."""
    replica_handlers: int = 0
    """Handlers one replica runs at a time for the queue. 0: as the live ones tell."""
    fleet_cap: int | None = None
    """The YAML's fleet_max_workers; the override in Queues wins."""
    busy_percent: int = 80
    """How busy handlers should be after a rise."""
    idle_percent: int = 50
    """How busy they should be after a fall."""
    unit: Unit = "replica"
    """replica: whatever one host name runs (a pod); process: one child."""


class ScaleFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the store sees of a queue."""

    live: int
    """Units with a worker that is heard of and does not drain."""
    settled: int
    """Those of them that have been there for a minute; at least 1 when any is live."""
    replica_handlers: int
    """Handlers of one unit, at least 1."""
    paused: bool = False
    active: bool = True
    open_circuits: int = 0
    """Types of the queue whose circuit is open or being tried on a live worker."""
    fleet_cap: int | None = None
    due: int = 0
    """Jobs whose time has come and that nobody has claimed."""
    oldest_due_ms: int | None = None
    buffered: int = 0
    running: int = 0
    busy_handlers: int = 0
    """On average over five minutes, of jobs that succeeded; rounded up."""
    mean_run_ms: int | None = None
    """None: no job has succeeded within five minutes."""
    late: int = 0
    """Jobs that began within five minutes and had waited longer than the target."""


class ScaleAdvice(msgspec.Struct, frozen=True):
    """The answer."""

    replicas: int
    reason: Reason
    low: int
    """Fewer would be too busy."""
    high: int
    """More would be idle."""


def problem(bounds: ScaleBounds) -> str | None:
    """What is wrong with the bounds, as a sentence's end; None: nothing."""
    if not 0 <= bounds.min_replicas <= bounds.max_replicas <= MAX_REPLICAS:
        return (
            f"0 ≤ min_replicas ≤ max_replicas ≤ {MAX_REPLICAS:,}, got {bounds.min_replicas} and {bounds.max_replicas}"
        )
    if not 0 <= bounds.target_lag_ms <= DAY_MS:
        return f"a target lag from 0 to 24 h, got {bounds.target_lag_ms} ms"
    if not LEAST_CATCH_UP_MS <= bounds.catch_up_ms <= DAY_MS:
        return f"a catch-up time from 1 s to 24 h, got {bounds.catch_up_ms} ms"
    if not 0 <= bounds.replica_handlers <= MAX_HANDLERS:
        return f"handlers per replica from 0 (as the live ones tell) to {MAX_HANDLERS:,}, got {bounds.replica_handlers}"
    if bounds.fleet_cap is not None and bounds.fleet_cap < 0:
        return f"a fleet cap of at least 0, got {bounds.fleet_cap}"
    if not 1 <= bounds.idle_percent < bounds.busy_percent <= 100:
        return f"1 ≤ idle_percent < busy_percent ≤ 100, got {bounds.idle_percent} and {bounds.busy_percent}"
    if bounds.unit not in ("replica", "process"):
        return f"the unit replica or process, got {bounds.unit!r}"
    return None


def recommend(figures: ScaleFigures, bounds: ScaleBounds) -> ScaleAdvice:
    """How many replicas the queue wants. `bounds` have no `problem`."""
    live, handlers, catch_up = figures.live, figures.replica_handlers, bounds.catch_up_ms
    lags = figures.oldest_due_ms is not None and figures.oldest_due_ms > bounds.target_lag_ms
    need = max(figures.running, figures.busy_handlers)
    if lags or live == 0:
        each = catch_up if figures.mean_run_ms is None else min(figures.mean_run_ms, catch_up)
        need += up((figures.due + figures.buffered) * each, catch_up)
    low = up(need * 100, handlers * bounds.busy_percent)
    high = up(need * 100, handlers * bounds.idle_percent)
    if live == 0 and low == 0 and figures.due + figures.buffered + figures.running > 0:
        low = 1
    if figures.fleet_cap is not None:
        low = min(low, up(figures.fleet_cap, handlers))
    high = max(high, low)

    reason = _hold(figures)
    if reason is not None:
        wanted = figures.settled
    elif (lags or live == 0) and low > live:
        wanted, reason = low, "lag"
    elif not lags and figures.late == 0 and high < live:
        wanted, reason = high, "idle"
    else:
        wanted, reason = live, "steady"
    if wanted < bounds.min_replicas:
        wanted, reason = bounds.min_replicas, "minimum"
    if wanted > bounds.max_replicas:
        wanted, reason = bounds.max_replicas, "maximum"
    return ScaleAdvice(wanted, reason, low, high)


def _hold(figures: ScaleFigures) -> Reason | None:
    if not figures.active:
        return "inactive"
    if figures.paused:
        return "paused"
    if figures.open_circuits > 0:
        return "circuit"
    cap = figures.fleet_cap
    # With nobody live, what is held is held by the dead: somebody has to come and release it.
    if cap is not None and figures.live > 0 and figures.buffered + figures.running >= cap:
        return "fleet_cap"
    return None


def up(value: int, by: int) -> int:
    """The quotient of whole numbers, rounded up."""
    return -(-value // by)
