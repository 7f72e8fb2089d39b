"""The limits of what may be enqueued, checked before storage.

Every refusal is an EnqueueError that names the value and the limit.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from unicodedata import category

import msgspec

from chokaq.jobs.codec import escape_non_ascii
from chokaq.jobs.errors import EnqueueError, PayloadTooLarge
from chokaq.lifecycle.states import KeyScope

MAX_NAME = 255
MAX_CREATED_BY = 100
MAX_TAGS = 1_000
MAX_KEY = 255
MAX_HEADERS_BYTES = 4_000
MAX_PRIORITY = 1_000_000
MAX_DELAY = timedelta(days=3_653)
"""Ten years."""


class Window(msgspec.Struct, frozen=True):
    """Idempotency scope: the key answers with its job for `duration` from acceptance, and while the job is live."""

    duration: timedelta


Scope = str | KeyScope | Window | timedelta
"""`"active"`, `"retained"`, `Window(timedelta)`, or a bare timedelta meaning a window."""


def check_name(field: str, value: str) -> str:
    """A queue or type key: 1 to 255 printable ASCII characters, no blanks at the ends (SQL Server ignores them there)."""
    if not isinstance(value, str):
        raise EnqueueError(f"the {field} must be a text, not {type(value).__name__}")
    if not value or value != value.strip():
        raise EnqueueError(f"the {field} {value[:80]!r} is blank, or has blanks at its ends")
    if len(value) > MAX_NAME:
        raise EnqueueError(f"the {field} {value[:40]!r}… has {len(value)} characters; at most {MAX_NAME} are allowed")
    if not (value.isascii() and value.isprintable()):
        raise EnqueueError(f"the {field} {value[:80]!r} may hold printable ASCII characters only")
    return value


def check_priority(value: int) -> int:
    """A whole number from 0 to 1,000,000; higher is served first."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_PRIORITY:
        raise EnqueueError(f"the priority must be a whole number from 0 to {MAX_PRIORITY}, not {value!r}")
    return value


def check_payload(payload: str, type_key: str, limit: int) -> str:
    """ASCII JSON text of at most `limit` bytes."""
    if len(payload) > limit:
        raise PayloadTooLarge(
            f"the payload of {type_key} has {len(payload):,} bytes; at most {limit:,} are allowed "
            "(envelope.max_payload_bytes): store the data elsewhere and enqueue a reference to it"
        )
    return payload


def check_text(field: str, value: str | None, limit: int) -> str | None:
    """Free text of at most `limit` characters (UTF-16 code units), without NUL and halves of surrogate pairs."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise EnqueueError(f"{field} must be a text, not {type(value).__name__}")
    if (length := utf16_length(value)) > limit:
        raise EnqueueError(f"{field} has {length} characters; at most {limit} are allowed: {value[:40]!r}…")
    if "\0" in value or any(category(character) == "Cs" for character in value):
        raise EnqueueError(f"{field} holds a NUL or half of a surrogate pair: {value[:80]!r}")
    return value


def check_tags(tags: str | Iterable[str] | None) -> str | None:
    """Tags as one text; several are joined by commas."""
    if tags is not None and not isinstance(tags, str):
        tags = ",".join(tags)
    return check_text("tags", tags, MAX_TAGS)


def check_key(key: str | None) -> str | None:
    """An idempotency key: trimmed, not blank, at most 255 characters, none of them a control character."""
    if key is None:
        return None
    if not isinstance(key, str):
        raise EnqueueError(f"the idempotency key must be a text, not {type(key).__name__}")
    trimmed = key.strip()
    if not trimmed:
        raise EnqueueError("the idempotency key is blank; leave it out to enqueue without one")
    if (length := utf16_length(trimmed)) > MAX_KEY:
        raise EnqueueError(
            f"the idempotency key {trimmed[:40]!r}… has {length} characters; at most {MAX_KEY} are allowed: hash it"
        )
    if any(category(character) in ("Cc", "Cs") for character in trimmed):
        raise EnqueueError(f"the idempotency key {trimmed[:80]!r} holds a control character")
    return trimmed


def check_scope(scope: Scope | None) -> tuple[KeyScope, int | None]:
    """A scope as the store takes it: (scope, window in milliseconds). None: active."""
    if scope is None:
        return KeyScope.ACTIVE, None
    if isinstance(scope, Window | timedelta):
        duration = scope.duration if isinstance(scope, Window) else scope
        if not timedelta(0) < duration <= MAX_DELAY:
            raise EnqueueError(
                f"the window of an idempotency key must be above 0 and at most ten years, not {duration}"
            )
        return KeyScope.WINDOW, _milliseconds(duration)
    if isinstance(scope, str) and scope.lower() in ("active", "retained"):
        scope = KeyScope[scope.upper()]
    if scope in (KeyScope.ACTIVE, KeyScope.RETAINED) and isinstance(scope, KeyScope):
        return scope, None
    raise EnqueueError(f'the scope must be "active", "retained" or Window(timedelta), not {scope!r}')


def check_headers(headers: Mapping[str, str] | None) -> str | None:
    """Headers as an ASCII JSON object of texts, at most 4,000 bytes."""
    if not headers:
        return None
    for name, value in headers.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise EnqueueError(f"headers must map texts to texts; {name!r} has {value!r}")
    try:
        text = escape_non_ascii(msgspec.json.encode(dict(headers)).decode())
    except UnicodeEncodeError:
        raise EnqueueError("headers hold half of a surrogate pair") from None
    if len(text) > MAX_HEADERS_BYTES:
        raise EnqueueError(f"the headers take {len(text):,} bytes as JSON; at most {MAX_HEADERS_BYTES:,} are allowed")
    return text


def check_delay(delay: float | timedelta | None) -> int:
    """A delay (seconds or a timedelta) in milliseconds, rounded up; from 0 to ten years."""
    if delay is None:
        return 0
    if not isinstance(delay, timedelta):
        if not isinstance(delay, int | float) or not math.isfinite(delay) or delay > MAX_DELAY.total_seconds():
            raise EnqueueError(f"the delay must be a timedelta or seconds, at most ten years, not {delay!r}")
        delay = timedelta(seconds=delay)
    if not timedelta(0) <= delay <= MAX_DELAY:
        raise EnqueueError(f"the delay must be from 0 to ten years, not {delay}")
    return _milliseconds(delay)


def check_instant(at: datetime | None) -> datetime | None:
    """An aware instant in UTC, rounded up to the millisecond the stores keep (a job is never early); at most ten years ahead."""
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise EnqueueError(f"`at` must be an aware datetime, not {type(at).__name__}")
    if at.utcoffset() is None:
        raise EnqueueError(f"`at` needs a time zone: {at.isoformat()} names no instant; use datetime(…, tzinfo=UTC)")
    try:
        instant = at.astimezone(UTC)
        rest = instant.microsecond % 1_000
        if rest:
            instant += timedelta(microseconds=1_000 - rest)
        limit = datetime.now(UTC) + MAX_DELAY
    except OverflowError:
        raise EnqueueError(f"`at` is out of range: {at.isoformat()}") from None
    if instant > limit:
        raise EnqueueError(f"`at` must be at most ten years ahead, not {at.isoformat()}")
    return instant


def _milliseconds(duration: timedelta) -> int:
    """Whole milliseconds, rounded up: nothing is due early, no window is short."""
    return -(-duration // timedelta(milliseconds=1))


def utf16_length(text: str) -> int:
    """Characters as SQL Server's nvarchar counts them: those beyond the basic plane twice."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)
