"""How many jobs a child holds beyond those it runs. Pure: time comes in as turns, four a second.

A buffer spares round trips as long as it is soon worked off. Behind handlers that run for minutes the same buffer would keep jobs
waiting that an idle sibling, here or on another host, could run at once. So a child takes its jobs for quick ones until one has
waited too long; from then on it holds about what it starts within a second, and the rest goes back.
"""

from collections import deque

PATIENCE = 1.0
"""Seconds a job may wait in the buffer before that counts as proof of slow handlers."""
_TURNS = 4


class Foresight:
    """What the buffer may hold."""

    __slots__ = ("_each", "_most", "_started", "ahead")

    def __init__(self, most: int) -> None:
        """`most`: the buffer's size as configured."""
        self._most = most
        self._each: deque[int] = deque(maxlen=_TURNS)
        self._started = 0
        self.ahead = most
        """Jobs to hold beyond those running."""

    def turn(self, started: int, waited: float, *, idle: bool) -> None:
        """A quarter of a second has passed. `started`: jobs started since boot; `waited`: seconds the oldest buffered job has
        waited; `idle`: nothing is held at all, so what comes next may be quick again.
        """
        self._each.append(started - self._started)
        self._started = started
        if idle:
            self.ahead = self._most
        elif self.ahead < self._most or waited > PATIENCE:
            self.ahead = min(self._most, sum(self._each))
