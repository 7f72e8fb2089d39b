"""Slows down guessing: after a few failures a name or an address has to wait, twice as long each time."""

import time
from collections.abc import Callable

FREE = 5
"""Failures that cost nothing."""
FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
FORGET = 900.0
"""Seconds without a failure after which all is forgotten."""
MAX_KEYS = 10_000


class Throttle:
    """Failures per key. Kept in this process: each replica counts for itself."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, tuple[int, float]] = {}

    def wait(self, *keys: str) -> float:
        """Seconds until the next try is looked at; 0: now."""
        now = self._clock()
        return max((self._left(key, now) for key in keys), default=0.0)

    def failed(self, *keys: str) -> None:
        """Count a failure of each."""
        now = self._clock()
        for key in keys:
            count, at = self._failures.pop(key, (0, now))
            self._failures[key] = (1 if now - at > FORGET else count + 1, now)
        while len(self._failures) > MAX_KEYS:
            del self._failures[next(iter(self._failures))]

    def passed(self, *keys: str) -> None:
        """Forget the failures of each."""
        for key in keys:
            self._failures.pop(key, None)

    def _left(self, key: str, now: float) -> float:
        count, at = self._failures.get(key, (0, 0.0))
        if count < FREE or now - at > FORGET:
            return 0.0
        return max(0.0, at + min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(count - FREE, 20)) - now)
