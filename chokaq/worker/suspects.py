"""When a suspect (a job that has crashed a process before) comes back that would only have waited here. Pure: time comes in.

A child runs one suspect at a time, so that a poison job takes no other suspect along. Those that find no place in its buffer
are handed back, each due about when this child could get to it: soon while suspects end quickly, rarely while one blocks the
line. Another child that is free earlier takes them then.
"""

SOONEST, LATEST = 0.25, 2.0
"""Bounds of the delay, seconds. A suspect that comes back costs a claim and a release, so a blocked line must not ask often."""
_FIRST_GUESS = 0.01
_WEIGHT = 0.25


class Pace:
    """How fast this child gets through its suspects."""

    __slots__ = ("_began", "_each", "_turn")

    def __init__(self) -> None:
        self._each = _FIRST_GUESS
        self._began: float | None = None
        self._turn = 0.0

    @property
    def one_runs(self) -> bool:
        """True from a suspect's start until its end: no other may start."""
        return self._began is not None

    def began(self, now: float) -> None:
        """A suspect is being started. `now`: seconds, of any steady clock."""
        self._began = now

    def ended(self, now: float) -> None:
        """The suspect has ended, or its start came to nothing."""
        if self._began is not None:
            self._each += _WEIGHT * (now - self._began - self._each)
            self._began = None

    def delay_ms(self, now: float, waiting: int) -> int:
        """For how long to hand back the next suspect; `waiting`: those that stay here and go first."""
        each = self._each if self._began is None else max(self._each, now - self._began)
        soonest = now + max(SOONEST, each * (waiting + 1))
        self._turn = min(max(self._turn + each, soonest), now + LATEST)
        return round((self._turn - now) * 1000)
