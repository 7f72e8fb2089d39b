"""What counting costs: one number, one value of a histogram, and all figures of a hundred jobs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.application import QUEUE
from bench.paths import SET, counted, fetched_jobs
from chokaq.config.settings import Policy
from chokaq.lifecycle.states import Answer
from chokaq.observe.metrics import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.values import ValueFile
from chokaq.worker.claims import Claim, Operation
from chokaq.worker.tally import Tally


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    file = ValueFile(tmp_path / "1-a.figures")
    yield Recorder(file, MetricsSettings())
    file.close()


@pytest.fixture
def tally(recorder: Recorder) -> Tally:
    return Tally(recorder, QUEUE)


def claims(tally: Tally) -> list[Claim]:
    policy, figures = Policy(), tally.type("noop")
    made = [Claim(job, policy, figures=figures) for job in fetched_jobs(SET)]
    for claim in made:
        claim.ended_at = 1.0
    return made


def test_add_to_a_counter(benchmark: Any, recorder: Recorder) -> None:
    benchmark(recorder.counter("chokaq_jobs_completed_total", QUEUE, "noop").add)


def test_observe_a_value(benchmark: Any, recorder: Recorder) -> None:
    benchmark(recorder.histogram("chokaq_jobs_processing_seconds", QUEUE, "noop").observe, 0.02)


def test_find_a_cell(benchmark: Any, recorder: Recorder) -> None:
    benchmark(recorder.counter, "chokaq_jobs_completed_total", QUEUE, "noop")


def test_count_a_hundred_claims(benchmark: Any, tally: Tally) -> None:
    benchmark(tally.claimed, claims(tally))


def test_count_a_hundred_successes(benchmark: Any, tally: Tally) -> None:
    benchmark(tally.answered, Operation.SUCCEED, claims(tally), [Answer.APPLIED] * SET)


def test_a_thousand_jobs_through_a_child_that_counts(benchmark: Any) -> None:
    benchmark.pedantic(counted, args=(1_000,), rounds=5)
