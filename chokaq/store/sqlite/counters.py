"""Outcome counters: what one call adds to the per-second buckets of its caller's slot."""

import sqlite3
from bisect import bisect_left, bisect_right
from itertools import pairwise

from chokaq.lifecycle.states import FailureReason, Outcome
from chokaq.store.sqlite.statements import load

LAG_LIMITS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
"""Milliseconds up to which Lag0 … Lag10 count; Lag11 counts the rest."""
SUCCESS_REASON = -1
"""What a success stores where a failure has its reason."""
OPERATOR_SLOT = 0
"""Operators have no slot of their own: the write lock keeps them apart."""

_COUNT = load("Moves")["count"]
_LAGS = len(LAG_LIMITS) + 1


class Tally:
    """Sums the outcomes of one call, so that each bucket is written once."""

    def __init__(self) -> None:
        """Empty."""
        self._sums: dict[tuple[str, int, int], list[int]] = {}

    def add(
        self, queue: str, outcome: Outcome, reason: int, *, duration_ms: int = 0, lag_ms: int | None = None
    ) -> None:
        """One outcome. `duration_ms` only of successes; `lag_ms` (start minus due) only of jobs that had started."""
        sums = self._of(queue, outcome, reason)
        sums[0] += 1
        sums[1] += duration_ms
        sums[2] = max(sums[2], duration_ms)
        if lag_ms is not None:
            sums[3 + bisect_left(LAG_LIMITS, lag_ms)] += 1

    def successes(self, queue: str, durations_ms: list[int], lags_ms: list[int]) -> None:
        """Jobs of a queue that succeeded, a duration and a lag each."""
        sums = self._of(queue, Outcome.SUCCEEDED, SUCCESS_REASON)
        sums[0] += len(durations_ms)
        sums[1] += sum(durations_ms)
        sums[2] = max(sums[2], *durations_ms)
        lags = sorted(lags_ms)
        edges = (0, *(bisect_right(lags, limit) for limit in LAG_LIMITS), len(lags))
        for index, (low, high) in enumerate(pairwise(edges)):
            sums[3 + index] += high - low

    def failure(self, queue: str, reason: FailureReason, lag_ms: int | None) -> None:
        """A job that stopped; `lag_ms` None when it had never started."""
        self.add(queue, Outcome.FAILED, reason, lag_ms=lag_ms)

    def _of(self, queue: str, outcome: Outcome, reason: int) -> list[int]:
        return self._sums.setdefault((queue, int(outcome), int(reason)), [0] * (3 + _LAGS))

    def write(self, connection: sqlite3.Connection, slot: int, now: int) -> None:
        """Add the sums to the buckets of this second."""
        start = now - now % 1000
        for (queue, outcome, reason), sums in self._sums.items():
            connection.execute(_COUNT, (slot, start, queue, outcome, reason, *sums))
