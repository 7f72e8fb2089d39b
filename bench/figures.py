"""The arithmetic of measurements: medians with their spread, percentiles, rates, slopes. Pure."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """A figure measured several times."""

    median: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        if self.runs == 1:
            return shown(self.median)
        return f"{shown(self.median)} ({shown(self.low)} … {shown(self.high)})"


def spread(values: Sequence[float]) -> Spread:
    """Median, lowest and highest of at least one value."""
    if not values:
        raise ValueError("no value was measured")
    return Spread(statistics.median(values), min(values), max(values), len(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 < share ≤ 1) of all values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("no value was measured")
    if not 0 < share <= 1:
        raise ValueError(f"a share lies in (0, 1], got {share}")
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def rate_after(timeline: Sequence[tuple[float, int]], skip: float = 0.1) -> float:
    """Completions per second, leaving out the first `skip` of all jobs.

    `timeline`: (second, how many completed then), ascending. The clock starts at the instant by which `skip` of the jobs were
    done: what a program needs to get going is not its speed.
    """
    total = sum(count for _, count in timeline)
    if total == 0:
        return 0.0
    done = 0
    for index, (second, count) in enumerate(timeline):
        done += count
        if done >= skip * total and index < len(timeline) - 1:
            return (total - done) / (timeline[-1][0] - second)
    return 0.0


def slope(series: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Rise per unit of x that fits best (least squares), common to several lines, each at a height of its own.

    0 when no x differs within any of them.
    """
    centred = []
    for points in series:
        if points:
            x, y = (statistics.fmean(values) for values in zip(*points, strict=True))
            centred += [(px - x, py - y) for px, py in points]
    spread_of_x = sum(x * x for x, _ in centred)
    return sum(x * y for x, y in centred) / spread_of_x if spread_of_x else 0.0


def shown(value: float) -> str:
    """A figure for people: thousands separated, about three significant digits."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def rounded(value: float) -> float:
    """A figure for machines: four significant digits are more than a noisy host can tell apart."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, 3 - math.floor(math.log10(abs(value))))
