"""`chokaq worker` under libfaketime. usage: other_clock.py worker --config …

libfaketime 0.9.10 takes the absolute times of `clock_nanosleep` for wall-clock times even when they are monotonic, and the
interpreter sleeps by that call: every `time.sleep` would fail. Waiting in `select` is left alone.
"""

import select
import sys
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex, /) -> None:
    """As long, by another call."""
    select.select([], [], [], float(seconds))


time.sleep = sleep

from chokaq.cli import main

if __name__ == "__main__":
    sys.argv[0] = "chokaq"
    main()
