"""Waiting for another process without guessing how long it takes."""

import select
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], what: str, timeout: float = 30.0) -> None:
    """Ask until `condition` holds; AssertionError naming `what` after `timeout` seconds. Only for other processes."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not seen within {timeout:g} s: {what}")
        select.select([], [], [], 0.01)
