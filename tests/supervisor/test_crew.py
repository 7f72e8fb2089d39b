"""The crew on a host that gives no process, and on a board that is full."""

import errno
from collections.abc import Iterator

import pytest

from chokaq.config.settings import QueueSettings, Settings
from chokaq.supervisor import crew as module
from chokaq.supervisor.board import Board
from chokaq.supervisor.children import Assignment, Child, Post
from chokaq.supervisor.crew import Crew
from chokaq.supervisor.spawn import Entries
from chokaq.supervisor.watch import Watch

SETTINGS = Settings(queues={"q": QueueSettings(name="q", max_jobs=1)})
NOBODY = Entries(lambda *_args: 0, lambda *_args: 0)


@pytest.fixture
def board() -> Iterator[Board]:
    """A board with one slot."""
    board = Board(slots=1, runners=1)
    yield board
    board.close()


def staffed(board: Board) -> tuple[Crew, Post]:
    """A crew with one ready child, which has done its last job."""
    crew = Crew(SETTINGS, board, NOBODY, lambda: None)
    post = crew.open_post(Assignment(SETTINGS.queues["q"], SETTINGS))
    number = board.take()
    assert number is not None
    slot = board.slot(number)
    slot.ready()
    slot.pulse(loop_lag_ms=0, running=0, buffered=0, completed=1, memory_kb=1)
    post.current = Child(pid=-1, slot=number, forked_at=0.0, name=post.name)
    post.current.ready_at = board.read(number).pulse_at
    crew._children[-1], crew._owners[-1] = post.current, post
    return crew, post


def test_a_recycling_for_which_the_host_gives_no_process_is_tried_again_after_the_backoff(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def fork(*_args: object) -> int:
        tries.append(1)
        raise OSError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(module, "fork", fork)
    crew, post = staffed(board)
    watch, now = Watch(crew), post.current.ready_at if post.current and post.current.ready_at else 0.0
    monkeypatch.setattr(board, "take", lambda: 0)
    monkeypatch.setattr(board, "give_back", lambda _number: None)
    for turn in range(9):
        watch.step(now + turn * 0.05)
    assert len(tries) == 1
    watch.step(now + 1.0)
    assert len(tries) == 2


def test_a_recycling_for_which_the_board_is_full_waits_longer_than_an_empty_post(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew, post = staffed(board)
    assert post.current is not None
    assert post.current.ready_at is not None
    now, tries = post.current.ready_at, list[int]()
    monkeypatch.setattr(board, "take", lambda: tries.append(1))
    watch = Watch(crew)
    for second in range(20):
        watch.step(now + second)
    assert len(tries) == 1
