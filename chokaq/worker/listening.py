"""A child's bell: hung while the child has room for jobs, taken down while a ring would be lost on it."""

import asyncio
from collections.abc import Callable

import structlog

from chokaq.store.doorbell import Bell, Doorbell

_log = structlog.get_logger("chokaq")


class Listener:
    """Listens for the rings of one queue on the running loop."""

    def __init__(self, identity: str, queue: str, heard: Callable[[], None]) -> None:
        """`identity`: of the store; `heard` is called on the loop when somebody has rung, once for all rings that wait."""
        self._doorbell = Doorbell(identity)
        self._queue = queue
        self._heard = heard
        self._bell: Bell | None = None
        self._deaf = False

    def hang(self) -> bool:
        """Listen from now on. False when nobody listened until now, so that a ring may have been missed."""
        if self._bell is not None or self._deaf:
            return True
        try:
            bell = self._bell = self._doorbell.listen(self._queue)
        except OSError as error:
            self._deaf = True
            _log.warning("doorbell_unavailable", queue=self._queue, error=str(error))
            return True
        asyncio.get_running_loop().add_reader(bell.fileno(), self._rung)
        return False

    def take_down(self) -> None:
        """Listen no more; rings that nobody has answered go to a sibling."""
        bell, self._bell = self._bell, None
        if bell is not None:
            asyncio.get_running_loop().remove_reader(bell.fileno())
            if bell.close():
                self.ring_others()

    def pass_on(self) -> None:
        """Listen no more, and hand a ring to a sibling."""
        self.take_down()
        self.ring_others()

    def ring_others(self) -> None:
        """Wake one child of the queue on this host; this one, too, unless its bell is down."""
        self._doorbell.ring(self._queue)

    def _rung(self) -> None:
        if self._bell is not None and self._bell.drain():
            self._heard()
