"""ULIDs that always rise within one process, so that a test may rely on the order it minted them in."""

import secrets
import time

from ulid import ULID

_last = 0


def new_id() -> str:
    """A ULID greater than every one minted before in this process (not thread-safe: mint before the threads start)."""
    global _last
    minted = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    _last = max(minted, _last + 1)
    return str(ULID.from_int(_last))


def new_ids(count: int) -> list[str]:
    """`count` rising ULIDs."""
    return [new_id() for _ in range(count)]
