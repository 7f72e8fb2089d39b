"""Whether this child reaches its store, as the supervisor sees it on the board: that decides readiness, never life (C30)."""

import asyncio
import time
from collections.abc import Sequence

from chokaq.worker.lane import Lane
from chokaq.worker.status import StatusSlot

PATIENCE = 5.0
"""A lane whose call has had no answer for so many seconds, repeats included, does not reach the store."""
LOOK = 0.25
"""Seconds between two looks at the lanes."""


class Reach:
    """Looks at the lanes from before their first connection on, and writes what it sees into the slot."""

    def __init__(self, slot: StatusSlot, lanes: Sequence[Lane]) -> None:
        """`lanes` may still grow. Looks at once, then again and again until closed; on the running loop."""
        self._slot = slot
        self._lanes = lanes
        self._loop = asyncio.get_running_loop()
        self._look()

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        now = time.monotonic()
        self._slot.reaches_store(all(lane.unanswered_for(now) < PATIENCE for lane in self._lanes))
        self._timer = self._loop.call_later(LOOK, self._look)
