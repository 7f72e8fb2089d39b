"""What the supervisor says of itself and its crew, in shared memory: when it last looked, and whose slot on the board is whose.

The process that answers probes inherits it, as it does the board, and asks nobody: it reads both while the supervisor stands
still. A note is believed whole or not at all: its mark is odd while it is written, and a checksum sees what a mark may not see on a
host that reorders writes.
"""

import mmap
import time
import zlib
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from chokaq.supervisor.crew import Crew

SIZE = 1 << 20
"""Bytes. Pages that are never written cost nothing."""
MAX_QUEUES = 2_000
"""Queues that a note names: with the longest of names they still fit."""
_HEADER = 64
_MARK, _LOOKED, _LENGTH, _SUM, _SERVED = range(5)
_READ_TRIES = 20


class Phase(StrEnum):
    """How far the program is."""

    STARTING = "starting"
    """It has not been ready yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It drains, and ends."""


class PostNote(msgspec.Struct, frozen=True, array_like=True):
    """One place for a child of a queue."""

    index: int
    slot: int | None
    """Where its child writes on the board; None: nobody stands there now."""
    live: bool
    """The supervisor takes its child for one that is ready and stays."""


class QueueNote(msgspec.Struct, frozen=True, array_like=True):
    """A queue that is served."""

    name: str
    posts: list[PostNote]


class CrewNote(msgspec.Struct, frozen=True, array_like=True):
    """Everybody, at the supervisor's last look."""

    phase: Phase
    queues: list[QueueNote]
    maintenance: dict[str, int | None] = {}
    """By database: the slot of its maintenance process; None: there is none now."""


class Bulletin:
    """The supervisor writes; the process that answers probes reads, and says in return that it does."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        self._view = memoryview(self._memory)
        self._words = self._view[:_HEADER].cast("Q")
        self._last = b""

    def write(self, note: CrewNote) -> None:
        """Say it, if it is news, and stamp the time of this look in any case."""
        raw = msgspec.msgpack.encode(note)
        if raw != self._last:
            words = self._words
            mark = words[_MARK]
            words[_MARK] = mark | 1
            self._memory[_HEADER : _HEADER + len(raw)] = raw
            words[_LENGTH], words[_SUM] = len(raw), zlib.crc32(raw)
            words[_MARK] = (mark | 1) + 1
            self._last = raw
        self._words[_LOOKED] = time.monotonic_ns()

    @property
    def looked_at(self) -> float | None:
        """time.monotonic() seconds of the supervisor's last look; None before the first."""
        stamp = self._words[_LOOKED]
        return stamp / 1e9 if stamp else None

    def serve(self) -> None:
        """The process that answers probes still does."""
        self._words[_SERVED] = time.monotonic_ns()

    @property
    def served_at(self) -> float:
        """time.monotonic() seconds when it last said so; 0 before the first time."""
        return self._words[_SERVED] / 1e9

    def read(self) -> CrewNote | None:
        """The last note; None before the first, and when the supervisor was stopped in the middle of one."""
        for _ in range(_READ_TRIES):
            mark = self._words[_MARK]
            raw = self._memory[_HEADER : _HEADER + min(self._words[_LENGTH], SIZE - _HEADER)]
            if mark and not mark & 1 and self._words[_MARK] == mark and zlib.crc32(raw) == self._words[_SUM]:
                return msgspec.msgpack.decode(raw, type=CrewNote)
        return None

    def close(self) -> None:
        """Unmap; for tests, the program keeps it to its end."""
        self._words.release()
        self._view.release()
        self._memory.close()


def describe(crew: "Crew", phase: Phase) -> CrewNote:
    """The note about a crew. Of more than MAX_QUEUES queues, those with a live child at every post go untold first."""
    queues = [
        QueueNote(
            name,
            [
                PostNote(post.index, None if post.current is None else post.current.slot, post.is_live)
                for post in sorted(posts, key=lambda post: post.index)
            ],
        )
        for name, posts in crew.queues().items()
    ]
    if len(queues) > MAX_QUEUES:
        queues.sort(key=lambda queue: all(post.live for post in queue.posts))
    return CrewNote(phase, queues[:MAX_QUEUES], crew.keepers.slots())
