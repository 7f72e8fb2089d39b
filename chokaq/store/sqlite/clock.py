"""The embedded store's clock is the host's, in whole milliseconds since 1970-01-01 UTC."""

import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def now_ms() -> int:
    """The host's clock."""
    return int(time.time() * 1000)


def to_ms(value: datetime) -> int:
    """An instant as milliseconds; a naive one is taken as UTC. Rounded up, so that no job is early by a fraction."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return -((EPOCH - value) // _MS)


def from_ms(value: int) -> datetime:
    """Milliseconds as an aware UTC datetime."""
    return EPOCH + value * _MS


def from_ms_or_none(value: int | None) -> datetime | None:
    """Like `from_ms`; None stays None."""
    return None if value is None else EPOCH + value * _MS
