"""The status board: what a child writes is what its parent reads, whole or not at all."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from chokaq.store.records import Held
from chokaq.supervisor.board import Board, SlotState

WORKER = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture
def board() -> Iterator[Board]:
    """A small board."""
    board = Board(slots=3, runners=8)
    yield board
    board.close()


def taken(board: Board) -> int:
    """A reserved slot."""
    number = board.take()
    assert number is not None
    return number


def test_everything_a_child_tells_is_read_back(board: Board) -> None:
    number = taken(board)
    slot = board.slot(number)
    assert board.read(number).state is SlotState.BOOTING
    slot.identify(WORKER)
    slot.ready()
    slot.pulse(loop_lag_ms=3, running=2, buffered=5, completed=70, memory_kb=81_000)
    slot.reaches_store(False)
    slot.begin(0, Held("A" * 26, 1), 12.5)
    slot.begin(7, Held("B" * 26, 2**31), float("inf"))
    now = time.monotonic()
    read = board.read(number)
    assert (read.state, read.worker_id) == (SlotState.READY, WORKER)
    assert not read.reaches_store
    assert (read.loop_lag_ms, read.running, read.buffered, read.completed, read.memory_kb) == (3, 2, 5, 70, 81_000)
    assert [(handler.job, handler.hard_deadline) for handler in read.handlers] == [
        (Held("A" * 26, 1), 12.5),
        (Held("B" * 26, 2**31), float("inf")),
    ]
    assert read.overdue(12.5) == [Held("A" * 26, 1)]
    assert read.overdue(12.4) == []
    age = read.pulse_age_ms(now)
    assert age is not None
    assert 0 <= age < 5_000
    assert not read.asks_replacement
    slot.end(0)
    slot.draining()
    slot.ask_replacement()
    read = board.read(number)
    assert (read.state, len(read.handlers), read.asks_replacement) == (SlotState.DRAINING, 1, True)


def test_a_slot_of_a_dead_child_is_wiped_before_its_next_use(board: Board) -> None:
    for _ in range(10):
        number = taken(board)
        read = board.read(number)
        assert (read.worker_id, read.handlers, read.pulse_at, read.completed) == (None, (), None, 0)
        assert read.reaches_store
        assert not read.asks_replacement
        slot = board.slot(number)
        slot.reaches_store(False)
        slot.ask_replacement()
        slot.identify(WORKER)
        slot.begin(5, Held("A" * 26, 1), 1.0)
        slot.pulse(loop_lag_ms=0, running=1, buffered=0, completed=9, memory_kb=1)
        board.give_back(number)


def test_a_full_board_gives_no_slot(board: Board) -> None:
    assert {taken(board) for _ in range(3)} == {0, 1, 2}
    assert board.take() is None
    board.give_back(1)
    assert board.take() == 1


def test_a_runner_beyond_the_board_is_left_out_and_harms_nobody(board: Board) -> None:
    number, neighbour = taken(board), taken(board)
    board.slot(number).begin(8, Held("A" * 26, 1), 1.0)
    board.slot(number).end(8)
    assert board.read(number).handlers == ()
    assert board.read(neighbour).state is SlotState.BOOTING


def test_a_worker_id_of_the_wrong_length_is_refused(board: Board) -> None:
    with pytest.raises(ValueError, match="26 characters"):
        board.slot(taken(board)).identify("short")


def test_a_child_killed_in_the_middle_of_a_write_leaves_nothing_half(board: Board) -> None:
    number = taken(board)
    slot = board.slot(number)
    slot.begin(0, Held("A" * 26, 1), 1.0)
    # The first store of `begin`: the entry is being written.
    board.words[board.base(number) + 16] = 1
    assert board.read(number).handlers == ()


@pytest.mark.processes
def test_a_reader_never_sees_half_of_what_another_process_is_writing(board: Board) -> None:
    number = taken(board)
    pid = os.fork()
    if pid == 0:
        slot = board.slot(number)
        for turn in range(10**9):
            letter = "ABCDEFGH"[turn % 8]
            slot.begin(turn % 3, Held(letter * 26, ord(letter)), float(ord(letter)))
    try:
        seen = 0
        while seen < 20_000:
            for handler in board.read(number).handlers:
                seen += 1
                letter = handler.job.id[0]
                assert handler.job == Held(letter * 26, ord(letter))
                assert handler.hard_deadline == float(ord(letter))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert seen


def test_readiness_of_the_whole_program_is_shared(board: Board) -> None:
    assert board.ready is False
    board.set_ready(True)
    assert board.ready is True
    assert board.read(taken(board)).state is SlotState.BOOTING


def test_the_word_that_a_drain_has_no_hurry_holds_until_it_is_taken_back_or_the_slot_is_taken_anew() -> None:
    board = Board(slots=1, runners=1)
    number = board.take()
    assert number is not None
    child = board.slot(number)
    assert child.in_a_hurry()
    board.set_patient(number, True)
    assert not child.in_a_hurry()
    board.set_patient(number, False)
    assert child.in_a_hurry()
    board.set_patient(number, True)
    board.give_back(number)
    assert board.take() == number
    assert child.in_a_hurry()
