"""How `chokaq worker` ends: the exit codes of the whole program. Only a clean drain is 0."""

from enum import IntEnum


class ProgramExit(IntEnum):
    """Exit code of the supervisor."""

    DRAINED = 0
    """Asked to stop; every process ended by itself in time and every lease was settled or handed back."""
    UNCLEAN = 1
    """Asked to stop, but something had to be killed, crashed while draining, or could not be reported to the store."""
    INTERNAL = 70
    """A defect of the supervisor itself; children were drained or killed. The log holds the traceback."""
    BOOT_FAILED = 78
    """At the start a child cannot boot (bad import, bad configuration, refused login, wrong schema): its message is on stderr.
    Restarting will not help. A store that does not answer is waited for, and a child that has been ready once is tried again."""
