"""What the board says about a child, and what follows from it. Pure: time and snapshot come in, a verdict comes out."""

from enum import Enum, auto

from chokaq.config.settings import QueueSettings
from chokaq.lifecycle.states import DeathCause
from chokaq.store.records import DeathNotice, Held
from chokaq.supervisor.board import SlotState, Snapshot
from chokaq.supervisor.children import Child
from chokaq.supervisor.reaper import Exit
from chokaq.worker.status import ExitCode

MAX_CULPRITS = 2_000
"""Culprits a notice names at most, so that it fits into one packet."""


class Verdict(Enum):
    """What a living child needs."""

    FINE = auto()
    OVERDUE = auto()
    """A handler is past its hard deadline: let the others finish, then kill."""
    STALLED = auto()
    """Its event loop has not turned for stall_limit: kill now."""
    SPENT = auto()
    """Its max_jobs or max_memory is reached, or an operator asked it to end: recycle."""


def judge(child: Child, board: Snapshot, queue: QueueSettings, now: float) -> Verdict:
    """The verdict on a child that has been ready."""
    if child.ready_at is None:
        return Verdict.FINE
    if now - max(board.pulse_at or 0.0, child.ready_at) > queue.stall_limit:
        return Verdict.STALLED
    if board.overdue(now):
        return Verdict.OVERDUE
    if board.asks_replacement:
        return Verdict.SPENT
    if queue.max_jobs is not None and board.completed >= queue.max_jobs:
        return Verdict.SPENT
    if queue.max_memory is not None and board.memory_kb * 1024 > queue.max_memory:
        return Verdict.SPENT
    return Verdict.FINE


def blame(board: Snapshot, now: float, *, stalled: bool) -> tuple[DeathCause, list[Held]]:
    """The cause and the culprits of a kill that we are about to make.

    Jobs past their hard deadline are culprits, and the others are handed back uncharged. When the loop stands still and nobody
    is past a deadline, any running handler may be the one that holds the interpreter. Handing all of them back uncharged would
    start it again for ever; so that kill counts as a crash, every running job is charged one, and the crash policy (with its
    limit) decides. A kill at the end of a drain blames only those past their deadline.
    """
    overdue = board.overdue(now)[:MAX_CULPRITS]
    if overdue:
        return DeathCause.LIMIT, overdue
    return (DeathCause.CRASH if stalled else DeathCause.SHUTDOWN), []


def cause_of(child: Child, end: Exit, board: Snapshot) -> DeathCause:
    """Why a reaped child died.

    A code of ours is believed only when the child had said that it drains, or had not claimed anything yet: a handler that calls
    os._exit(0) is a crash, else its job would be handed back uncharged and run again for ever.
    """
    if end.signal is None and end.code in set(ExitCode):
        return DeathCause.CRASH if board.state is SlotState.READY else DeathCause.SHUTDOWN
    if child.killed_for is not None and end.signal == 9:
        return child.killed_for
    if child.drain_reason is not None and end.signal == 15:
        # Our TERM came before its own handler stood.
        return DeathCause.SHUTDOWN
    return DeathCause.CRASH


def notice_of(child: Child, queue: str, end: Exit, board: Snapshot, now: float) -> DeathNotice | None:
    """What maintenance has to know of a reaped child; None when it had not even chosen a worker id."""
    if board.worker_id is None:
        return None
    cause = cause_of(child, end, board)
    return DeathNotice(
        worker_id=board.worker_id,
        queue=queue,
        cause=cause,
        exit_code=end.code,
        signal=end.signal,
        memory_kb=board.memory_kb or end.peak_memory_kb,
        last_pulse_ms=board.pulse_age_ms(now),
        culprits=child.culprits if cause is DeathCause.LIMIT else [],
    )
