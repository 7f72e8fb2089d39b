"""How many jobs a child holds beyond those it runs. Pure: time comes in as turns, four a second.

A buffer spares round trips as long as it is soon worked off. Behind handlers that run for minutes the same buffer would keep jobs
waiting that an idle sibling, here or on another host, could run at once. So a child begins with a small one. While jobs pass
quickly it grows to what was started within a quarter of a second; once a job has waited too long the child holds about what it
starts within a second, and the rest goes back.
"""

from collections import deque

PATIENCE = 1.0
"""Seconds a job may wait in the buffer before that counts as proof of slow handlers."""
_TURNS = 4


class Foresight:
    """What the buffer may hold."""

    __slots__ = ("_each", "_least", "_most", "_started", "ahead")

    def __init__(self, least: int, most: int | None = None) -> None:
        """`least`: the buffer to begin with; `most`: what it may grow to (None: it does not grow)."""
        self._least = least
        self._most = least if most is None else most
        self._each: deque[int] = deque(maxlen=_TURNS)
        self._started = 0
        self.ahead = least
        """Jobs to hold beyond those running."""

    @property
    def keep(self) -> int:
        """Buffered jobs beyond so many are to go back: only slow handlers send any, a pause in a quick stream does not."""
        return self.ahead if self.ahead < self._least else self._most

    def turn(self, started: int, waited: float, *, idle: bool) -> None:
        """A quarter of a second has passed. `started`: jobs started since boot; `waited`: seconds the oldest buffered job has
        waited; `idle`: nothing is held at all, so what comes next may be quick again.
        """
        each = self._each
        each.append(started - self._started)
        self._started = started
        if idle:
            self.ahead = self._least
        elif self.ahead < self._least or waited > PATIENCE:
            self.ahead = min(self._least, sum(each))
        else:
            self.ahead = max(self._least, min(self._most, max(each)))
