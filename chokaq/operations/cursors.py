"""Where a list goes on: opaque text bound to the list and the filter it came from.

The size of a page may change between two pages, the filter may not: a cursor of another filter would skip rows or show them twice.
"""

import base64
import binascii
import hashlib

import msgspec

from chokaq.operations.errors import OperationError

_VERSION = b"\x01"
_FINGERPRINT = 8
_HEAD = len(_VERSION) + _FINGERPRINT


def cursor_of(listing: str, where: object, position: str) -> str:
    """The cursor behind `position` (ASCII) of a list, e.g. `jobs`, filtered by `where`: anything JSON can hold."""
    raw = _VERSION + _fingerprint(listing, where) + position.encode("ascii")
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def position_of(listing: str, where: object, cursor: str) -> str:
    """The position in a cursor. Raises OperationError for a text that is no cursor, or one of another list or filter."""
    text = cursor.strip()
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        position = raw[_HEAD:].decode("ascii")
    except (binascii.Error, ValueError):
        raw, position = b"", ""
    if not raw.startswith(_VERSION) or not position:
        raise OperationError(
            f"{text[:60]!r} is no cursor: pass on, unchanged, what the page before it named as `after`"
        )
    if raw[len(_VERSION) : _HEAD] != _fingerprint(listing, where):
        raise OperationError(
            "this cursor belongs to another list or another filter: name the filter it came with (only the size of a page "
            "may change), or begin anew without a cursor"
        )
    return position


def _fingerprint(listing: str, where: object) -> bytes:
    told = msgspec.json.encode([listing, where], order="deterministic")
    return hashlib.blake2b(told, digest_size=_FINGERPRINT).digest()
