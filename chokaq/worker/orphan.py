"""A child whose supervisor is gone: how it learns of it, and what ends it for certain."""

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable

from chokaq.worker.status import ExitCode

_PR_SET_PDEATHSIG = 1


def terminate_with_parent() -> None:
    """Ask the kernel for a TERM when the parent dies (Linux; elsewhere the loop's own check of its parent has to do).

    The parent may have died before this call: compare `os.getppid()` afterwards.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def start_watchdog(grace: float, leave: Callable[[int], None]) -> threading.Thread:
    """End the process in `grace` seconds, whatever its loop is doing by then; nobody else would."""

    def watch() -> None:
        time.sleep(grace)
        leave(ExitCode.ORPHANED)

    thread = threading.Thread(target=watch, name="chokaq-watchdog", daemon=True)
    thread.start()
    return thread
