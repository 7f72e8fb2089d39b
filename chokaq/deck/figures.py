"""Pure arithmetic: rates, lag and charts out of the outcome counters."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from chokaq.config.settings import DeckSettings
from chokaq.deck.shown import Charts, Lag, Point
from chokaq.lifecycle.states import FailureReason, Outcome
from chokaq.store.looking import Series, SeriesRow

LAG_LIMITS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
"""Milliseconds up to which the steps of the histogram count; the last one counts the rest."""
STEPS = len(LAG_LIMITS) + 1
RATE_STEP = 5
"""Seconds of the steps that rates are counted in."""
SPANS: dict[str, tuple[int, int]] = {"hour": (30, 120), "day": (600, 144)}
"""Seconds a step, and steps."""


def lag_colour(oldest_due_ms: int | None, deck: DeckSettings) -> Lag:
    """How bad it is that the oldest due job waits for so long."""
    seconds = (oldest_due_ms or 0) / 1_000
    if seconds >= deck.lag_critical:
        return "critical"
    return "warning" if seconds >= deck.lag_warning else "ok"


def histogram(rows: Iterable[SeriesRow]) -> list[int]:
    """Pickup lags of all rows together."""
    found = [0] * STEPS
    for row in rows:
        for place, count in enumerate(row.lag):
            found[place] += count
    return found


def percentile_ms(counts: Sequence[int], share: float) -> float | None:
    """The upper bound of the step that holds a percentile (of the last step: its lower bound); None: nothing was counted."""
    total = sum(counts)
    if not total:
        return None
    wanted, seen = share * total, 0
    for place, count in enumerate(counts):
        seen += count
        if count and seen >= wanted:
            return float(LAG_LIMITS[min(place, len(LAG_LIMITS) - 1)])
    return float(LAG_LIMITS[-1])


def mean_ms(counts: Sequence[int]) -> float | None:
    """The mean, each job taken at the middle of its step; None: nothing was counted."""
    total = sum(counts)
    if not total:
        return None
    bounds = [0, *LAG_LIMITS, LAG_LIMITS[-1]]
    return sum(count * (bounds[place] + bounds[place + 1]) / 2 for place, count in enumerate(counts)) / total


def highest_ms(counts: Sequence[int]) -> float | None:
    """The upper bound of the highest step in use (of the last step: its lower bound); None: nothing was counted."""
    return percentile_ms(counts, 1.0)


def recent(series: Series, seconds: int) -> tuple[list[SeriesRow], float]:
    """Rows of the last so many whole seconds and the step under way, and how long that is."""
    since = series.current - timedelta(seconds=seconds)
    return [row for row in series.rows if row.start >= since], max(1.0, (series.now - since).total_seconds())


def count(rows: Iterable[SeriesRow], outcome: Outcome) -> int:
    """How many jobs ended so."""
    return sum(row.count for row in rows if row.outcome == outcome)


def charts(series: Series, span: Literal["hour", "day"], capacity: int) -> Charts:
    """One point per step, the empty ones included."""
    length, steps = SPANS[span]
    grouped: dict[datetime, list[SeriesRow]] = {}
    for row in series.rows:
        grouped.setdefault(row.start, []).append(row)
    starts = [series.current - timedelta(seconds=length * back) for back in range(steps - 1, -1, -1)]
    return Charts(
        span=span,
        step_seconds=length,
        points=[_point(start, grouped.get(start, []), length) for start in starts],
        capacity=capacity,
    )


def _point(start: datetime, rows: list[SeriesRow], length: int) -> Point:
    failed: dict[str, int] = {}
    for row in rows:
        if row.outcome == Outcome.FAILED:
            label = FailureReason(row.reason).label
            failed[label] = failed.get(label, 0) + row.count
    ran = sum(row.duration_ms for row in rows if row.outcome == Outcome.SUCCEEDED)
    return Point(
        start=start,
        succeeded=count(rows, Outcome.SUCCEEDED),
        failed=failed,
        retried=count(rows, Outcome.RETRIED),
        lag_p95_ms=percentile_ms(histogram(rows), 0.95),
        running_mean=ran / 1_000 / length,
    )
