"""What becomes of a handler's exception: classification, words, delay, outcome."""

from typing import Any

import pytest

from bench.paths import fetched_jobs
from chokaq.config.settings import Policy
from chokaq.lifecycle.errors import Throttled
from chokaq.lifecycle.failures import classify, describe
from chokaq.lifecycle.retry import backoff
from chokaq.worker.outcomes import after_error


def raised(kind: Exception) -> Exception:
    """The exception with a traceback and a cause."""
    try:
        try:
            raise ConnectionResetError("peer went away")
        except ConnectionResetError as cause:
            raise kind from cause
    except type(kind) as error:
        return error


ERRORS = {"transient": RuntimeError("no"), "fatal": TypeError("no"), "throttled": Throttled(5.0)}


@pytest.mark.parametrize("kind", ERRORS)
def test_classify(benchmark: Any, kind: str) -> None:
    assert benchmark(classify, raised(ERRORS[kind]))


def test_describe(benchmark: Any) -> None:
    assert benchmark(describe, raised(RuntimeError("no")))


def test_backoff(benchmark: Any) -> None:
    assert benchmark(lambda: backoff(3, base=3.0, multiplier=2.0, maximum=3_600.0, jitter=1.0, chance=0.5))


def test_the_whole_outcome_of_a_failure(benchmark: Any) -> None:
    job, policy, error = fetched_jobs(1)[0], Policy(), raised(RuntimeError("no"))
    assert benchmark(after_error, job, policy, error, chance=0.5)
