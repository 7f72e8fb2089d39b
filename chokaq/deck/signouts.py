"""Telling a database who signed out, so that every other process of The Deck refuses the session: each asks with what changed."""

import asyncio
import time
from collections.abc import Callable

import structlog

from chokaq.deck import topics
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import Live, Subscription
from chokaq.store.errors import StoreError

log = structlog.get_logger("chokaq")

PATIENCE = 2.0
"""Seconds that whoever signs out waits for the database at most; it is told later then."""


class SignOuts:
    """What one database is to be told; tried again when it comes back."""

    def __init__(self, lanes: Lanes, live: Live, clock: Callable[[], float] = time.time) -> None:
        self._lanes = lanes
        self._live = live
        self._clock = clock
        self._untold: dict[str, float] = {}
        """When each session would end, in seconds since 1970."""
        self._subscription: Subscription | None = None

    async def tell(self, session: str, until: float) -> None:
        """A session was ended before its time. Never raises."""
        self._untold[session] = until
        if self._live.state.stale_since is None:
            await asyncio.wait({asyncio.get_running_loop().create_task(self._send())}, timeout=PATIENCE)
        if self._untold and self._subscription is None:
            self._subscription = self._live.subscribe(topics.NOTHING, self._send)

    async def _send(self) -> None:
        for session, until in list(self._untold.items()):
            remaining_ms = round((until - self._clock()) * 1_000)
            if remaining_ms > 0:
                try:
                    await self._lanes.run(lambda store, told=(session, remaining_ms): store.sign_out(*told))  # type: ignore[misc]
                except StoreError as error:
                    log.warning("deck_sign_out_untold", problem=str(error))
                    self._live.failed(error)
                    return
            self._untold.pop(session, None)
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
