"""What a child writes on the supervisor's status board, and how it ends. The board itself stands in chokaq.supervisor.board."""

from enum import IntEnum
from typing import Protocol

from chokaq.store.records import Held


class ExitCode(IntEnum):
    """How a child ends when it ends by itself."""

    DONE = 0
    """Drained: everything settled or handed back."""
    RETIRED = 75
    """Maintenance had ended this worker id (it was thought dead): respawn at once under a new id."""
    ORPHANED = 76
    """Its supervisor is gone; it drained by itself."""
    BOOT_FAILED = 78
    """Bad import, bad configuration, unusable store: the message is on stderr; respawning would not help."""


class StatusSlot(Protocol):
    """One child's slot of the board. Writes are plain memory stores: no lock, no system call, safe from any thread."""

    @property
    def runners(self) -> int:
        """Handlers at once that the slot can show: the hard limit sees no more of them, so no more may run."""
        ...

    def identify(self, worker_id: str) -> None:
        """The worker id of this incarnation; written before the worker registers."""
        ...

    def progress(self) -> None:
        """A step of the boot is done; the boot timeout counts from the last one. Counts as a pulse."""
        ...

    def ready(self) -> None:
        """The application is imported, the store reached, procedures warm: the child claims from now on."""
        ...

    def pulse(self, *, loop_lag_ms: int, running: int, buffered: int, completed: int, memory_kb: int) -> None:
        """Written by the event loop itself several times a second; stamps the time. `completed`: jobs settled since boot."""
        ...

    def begin(self, runner: int, job: Held, hard_deadline: float) -> None:
        """A handler starts in runner `runner` (0 …); `hard_deadline` is in time.monotonic() seconds, inf for none."""
        ...

    def end(self, runner: int) -> None:
        """The handler in that runner has ended."""
        ...

    def reaches_store(self, reachable: bool) -> None:
        """False while the store has not answered this child for some seconds; from boot on, several times a second."""
        ...

    def in_a_hurry(self) -> bool:
        """Read when TERM arrives, every time: False when running handlers may end in their own time, not in the grace."""
        ...

    def draining(self) -> None:
        """The child claims no more."""
        ...

    def ask_replacement(self) -> None:
        """An operator wants this worker to end: it goes on claiming until the supervisor has put another in its place."""
        ...
