"""What the probes of a worker ask a store."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

MAX_QUEUES = 1_000
"""Queues in one call."""


class QueueLag(msgspec.Struct, frozen=True, kw_only=True):
    """How long a queue lets its jobs wait."""

    name: str
    paused: bool
    active: bool
    oldest_due_ms: int | None
    """Age of the oldest due job; None: nothing is due."""


class StoreHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of itself and of some queues."""

    version: int | None
    """Of the live schema; None: nothing is installed."""
    needed: int
    """The version this program was written for."""
    fits: bool
    """Whether a session would be opened on that version."""
    queues: list[QueueLag]
    """Those asked for, by name; also such as it has never heard of."""


class ProbingSession(Protocol):
    """The part of a session that only probes call."""

    def read_health(self, queues: Sequence[str]) -> StoreHealth:
        """The live schema's version, and the lag of these queues (at most 1,000): one call that counts nothing."""
        ...
