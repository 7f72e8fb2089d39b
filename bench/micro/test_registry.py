"""Finding what belongs to a job, and making a row of one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.application import QUEUE, TYPE, Noop, app
from bench.paths import LIMIT
from chokaq.jobs.dispatch import Dispatcher
from chokaq.jobs.enqueue import Enqueue, compose
from chokaq.jobs.ids import new_id


def test_find_a_registration(benchmark: Any) -> None:
    assert benchmark(app.registry.find, TYPE)


def test_find_a_route(benchmark: Any) -> None:
    with ThreadPoolExecutor(1) as executor:
        dispatcher = Dispatcher(app, executor)
        assert benchmark(dispatcher.find, QUEUE, TYPE)


def test_compose_a_row(benchmark: Any) -> None:
    assert benchmark(compose, app.registry, Enqueue(Noop(1)), LIMIT)


def test_mint_an_id(benchmark: Any) -> None:
    assert benchmark(new_id)
