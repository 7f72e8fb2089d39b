"""What the board and the bulletin say, as facts for the rules of health. Reads memory only: it waits for nobody."""

from typing import NamedTuple

from chokaq.observe.facts import ChildFacts, QueueFacts
from chokaq.supervisor.board import Board, SlotState
from chokaq.supervisor.bulletin import Bulletin, PostNote


class CrewFacts(NamedTuple):
    """The worker as it stands in shared memory."""

    silent: float | None
    """Seconds since the supervisor's last look; None: it has not looked yet."""
    phase: str | None
    """None: it has not told of its children."""
    queues: list[QueueFacts]
    maintenance: list[ChildFacts]
    """One for each database, by its name."""


def read_crew(bulletin: Bulletin, board: Board, now: float) -> CrewFacts:
    """`now`: time.monotonic()."""
    looked_at, note = bulletin.looked_at, bulletin.read()
    silent = None if looked_at is None else max(0.0, now - looked_at)
    if note is None:
        return CrewFacts(silent, None, [], [])
    queues = [
        QueueFacts(queue.name, [_child(f"{queue.name}#{post.index}", post, board, now) for post in queue.posts])
        for queue in note.queues
    ]
    maintenance = [_child(name, PostNote(0, slot, True), board, now) for name, slot in note.maintenance.items()]
    return CrewFacts(silent, note.phase.value, queues, maintenance)


def _child(name: str, post: PostNote, board: Board, now: float) -> ChildFacts:
    if post.slot is None:
        return ChildFacts(name=name, here=False)
    read = board.read(post.slot)
    return ChildFacts(
        name=name,
        ready=post.live and read.state is SlotState.READY,
        silent=None if read.pulse_at is None else max(0.0, now - read.pulse_at),
        lag=read.loop_lag_ms / 1000,
        reaches_store=read.reaches_store,
    )
