"""Ids of jobs: ULIDs that increase within a process, so that jobs of equal priority keep the order they were enqueued in."""

import os
import threading
import time

from ulid import ULID

_RANDOM_BYTES = 10
_LAST = (1 << 128) - 1


class UlidGenerator:
    """Mints increasing ULIDs; safe to share between threads and to hold across a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        # A child that kept its parent's counter would mint the parent's next ids again.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def mint(self) -> str:
        """A new id, 26 characters, greater than every id this process minted before (also when the clock steps back)."""
        now = time.time_ns() // 1_000_000
        with self._lock:
            if now > self._last >> 80:
                # The top bit stays free: there is room for 2^79 increments within the millisecond.
                self._last = (now << 80) | (int.from_bytes(os.urandom(_RANDOM_BYTES), "big") >> 1)
            else:
                self._last = min(self._last + 1, _LAST)
            value = self._last
        return str(ULID.from_bytes(value.to_bytes(16, "big")))


_generator = UlidGenerator()


def new_id() -> str:
    """A new ULID from the process's own generator."""
    return _generator.mint()


def is_id(text: str) -> bool:
    """True when `text` may be a job's id: 26 printable ASCII characters (a `char(26)` parameter would cut a longer one)."""
    return len(text) == 26 and text.isascii() and text.isalnum()
