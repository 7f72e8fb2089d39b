"""The fan-out: one question per second asks the database what changed, and whoever looks at something of it is told.

Each Deck process asks for itself, so any number of replicas works; it asks nothing while nobody looks.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import msgspec

Told = Callable[[], Awaitable[None] | None]
"""Called in the event loop, without arguments: read again what you show. An exception is logged and changes nothing."""


class State(msgspec.Struct, frozen=True):
    """How fresh what the pages show is."""

    stale_since: datetime | None = None
    """When the database was last heard; None: it answers."""
    problem: str | None = None
    """Why it does not, in words (no secrets)."""


class Subscription:
    """One listener. Close it when the page goes (`client.on_delete(subscription.close)`)."""

    def watch(self, job_ids: Sequence[str]) -> None:
        """The jobs now visible on this page: it is told when one of them changes (progress, status, lease).

        At most 500 are watched by a process, job pages first, then the lists in the order in which they came.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Tell it nothing more; harmless when closed."""
        raise NotImplementedError


class Live:
    """What changed, told to who looks."""

    @property
    def state(self) -> State:
        """Whether the database answers."""
        raise NotImplementedError

    def subscribe(self, topic: str, told: Told, *, watch: Sequence[str] = ()) -> Subscription:
        """Call `told` after a change that concerns the topic (see `topics`), at most once a second, never twice at a time.

        Also called when the state turns stale, and when it recovers. Not called at first: read, then subscribe.
        """
        raise NotImplementedError

    def hint(self) -> None:
        """Something was changed by this process: ask at once instead of at the next second. Actions call it themselves."""
        raise NotImplementedError
