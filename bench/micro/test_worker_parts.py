"""Limiter, buffer, board: what every job touches inside a child. And the whole path."""

import math
from typing import Any

from bench.paths import SET, fetched_jobs, worker
from chokaq.config.settings import Policy
from chokaq.store.records import Held
from chokaq.supervisor.board import Board
from chokaq.worker.buffer import Buffer
from chokaq.worker.claims import Claim
from chokaq.worker.limiter import Limiter


def test_limiter_take_and_give_back(benchmark: Any) -> None:
    limiter = Limiter(10)

    def turn() -> None:
        limiter.acquire()
        limiter.release()

    benchmark(turn)


def test_buffer_a_hundred_in_and_out(benchmark: Any) -> None:
    buffer, policy = Buffer(), Policy()
    claims = [Claim(job, policy) for job in fetched_jobs(SET)]

    def turn() -> None:
        for claim in claims:
            buffer.push(claim)
        while buffer.pop(suspects=True) is not None:
            pass

    benchmark(turn)


def test_board_begin_and_end(benchmark: Any) -> None:
    board = Board(1)
    number = board.take()
    assert number is not None
    slot, held = board.slot(number), Held("01J" + "0" * 23, 1)

    def turn() -> None:
        slot.begin(0, held, math.inf)
        slot.end(0)

    benchmark(turn)


def test_board_read_with_a_hundred_handlers(benchmark: Any) -> None:
    board = Board(1)
    number = board.take()
    assert number is not None
    slot = board.slot(number)
    for runner in range(SET):
        slot.begin(runner, Held("01J" + "0" * 23, 1), math.inf)
    assert len(benchmark(board.read, number).handlers) == SET


def test_a_thousand_jobs_through_a_child_without_a_store(benchmark: Any) -> None:
    benchmark.pedantic(worker, args=(1_000,), rounds=5)
