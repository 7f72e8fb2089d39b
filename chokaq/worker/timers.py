"""One wheel for all deadlines of a child: most jobs end long before theirs, so setting and clearing one costs next to nothing."""

import asyncio
import heapq
import math
from collections.abc import Callable

from chokaq.worker.claims import Claim

_FINE = 0.01
_COARSE = 0.25
_COARSE_FROM = 10.0
"""A deadline further away than this may be up to a quarter of a second late; a nearer one, ten milliseconds."""
_SPARE = 64
"""Buckets beyond twice those in use that may stand empty."""


class Timers:
    """Deadlines in buckets; one timer of the loop waits for the nearest bucket. Never early."""

    def __init__(self, expired: Callable[[Claim], None]) -> None:
        """`expired` is called on the loop for every claim whose deadline passed and was not cleared."""
        self._loop = asyncio.get_running_loop()
        self._expired = expired
        self._buckets: dict[float, set[Claim]] = {}
        self._order: list[float] = []
        self._most = _SPARE
        self._handle: asyncio.TimerHandle | None = None
        self._armed = math.inf

    def set(self, claim: Claim, now: float, delay: float) -> None:
        """Call `expired(claim)` `delay` seconds from `now` (`time.monotonic()`, which is the loop's clock)."""
        width = _FINE if delay < _COARSE_FROM else _COARSE
        due = math.ceil((now + delay) / width) * width
        bucket = self._buckets.get(due)
        if bucket is None:
            if len(self._buckets) >= self._most:
                self._sweep()
            bucket = self._buckets[due] = set()
            heapq.heappush(self._order, due)
            if due < self._armed:
                self._arm(due)
        bucket.add(claim)
        claim.timer = bucket

    @staticmethod
    def clear(claim: Claim) -> None:
        """Forget the claim's deadline; harmless when it has none."""
        if claim.timer is not None:
            claim.timer.discard(claim)
            claim.timer = None

    def close(self) -> None:
        """Forget everything."""
        if self._handle is not None:
            self._handle.cancel()
        self._buckets.clear()
        self._order.clear()
        self._armed = math.inf

    def _sweep(self) -> None:
        """Drop the buckets whose deadlines were all cleared: by day-long timeouts they would pile up for a day."""
        self._buckets = {due: bucket for due, bucket in self._buckets.items() if bucket}
        self._order = sorted(self._buckets)
        self._most = 2 * len(self._buckets) + _SPARE

    def _arm(self, due: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed = due
        self._handle = self._loop.call_at(due, self._turn)

    def _turn(self) -> None:
        # The loop's clock is coarser than a bucket: what it woke us for is due, whatever it says the time is.
        now = max(self._loop.time(), self._armed)
        self._armed, self._handle = math.inf, None
        while self._order and self._order[0] <= now:
            for claim in self._buckets.pop(heapq.heappop(self._order)):
                claim.timer = None
                self._expired(claim)
        if self._order and self._order[0] < self._armed:
            self._arm(self._order[0])
