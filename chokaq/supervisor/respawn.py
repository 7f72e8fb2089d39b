"""When a dead child is replaced: at once after a healthy life, ever later while it keeps dying."""

import random
from collections.abc import Callable

HEALTHY = 60.0
"""Seconds a child must have been ready for its earlier deaths to be forgotten."""
MAX_EARLY_DEATHS = 3
"""Deaths in a row before ready that stop the program."""


class Backoff:
    """Delay before the next fork of one post: doubles from `first` to `ceiling` seconds, with up to a quarter of jitter."""

    def __init__(self, first: float, ceiling: float, jitter: Callable[[], float] = random.random) -> None:
        self._first = first
        self._ceiling = ceiling
        self._jitter = jitter
        self._failures = 0

    def died(self, ready_for: float) -> float:
        """Seconds to wait after a death; `ready_for`: how long the child had been ready."""
        if ready_for >= HEALTHY:
            self._failures = 0
        delay = min(self._ceiling, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return min(self._ceiling, delay * (1.0 + self._jitter() / 4.0))
