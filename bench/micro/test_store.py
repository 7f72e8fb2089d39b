"""One operation of each store at 1, 20, 100 and 500 jobs a call."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.micro.conftest import Bench
from bench.paths import new_jobs
from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.records import AttemptError, Beat, Failure, Figures, Release, Retry

SIZES = [1, 20, 100, 500]
ROUNDS = 20
ERROR = AttemptError("ConnectionError", "the mail server hung up", "Traceback …\n  line 1")

Setup = Callable[[Bench, int], Any]
Call = Callable[[Bench, Any], Any]


def _waiting(bench: Bench, size: int) -> int:
    bench.pending(size)
    return size


def _fetch(bench: Bench, size: int) -> Any:
    bench.request += 1
    return bench.session.fetch_jobs(bench.worker, bench.request, size)


OPERATIONS: dict[str, tuple[Setup, Call]] = {
    "enqueue": (lambda _, n: new_jobs(n), lambda b, jobs: b.session.enqueue_jobs(jobs)),
    "fetch": (_waiting, _fetch),
    "start": (lambda b, n: b.fetched(n), lambda b, held: b.session.start_jobs(b.worker, held)),
    "keep_alive": (
        lambda b, n: [Beat(held.id, held.lease) for held in b.started(n)],
        lambda b, beats: b.session.keep_alive(b.worker, beats, Figures())[0],
    ),
    "archive": (lambda b, n: b.started(n), lambda b, held: b.session.archive_succeeded(b.worker, held)),
    "retry": (
        lambda b, n: [Retry(held.id, held.lease, 86_400_000, ERROR) for held in b.started(n)],
        lambda b, retries: b.session.reschedule_for_retry(b.worker, retries),
    ),
    "fail": (
        lambda b, n: [
            Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR) for held in b.started(n)
        ],
        lambda b, failures: b.session.archive_failed(b.worker, failures),
    ),
    "release": (
        lambda b, n: [Release(held.id, held.lease, 86_400_000) for held in b.started(n)],
        lambda b, releases: b.session.release_jobs(b.worker, releases),
    ),
}
"""By name: what must stand ready (not timed), and the call."""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(benchmark: Any, bench: Bench, name: str, size: int) -> None:
    setup, call = OPERATIONS[name]
    benchmark.extra_info["jobs_per_call"] = size
    answer = benchmark.pedantic(
        lambda given: call(bench, given), setup=lambda: ((setup(bench, size),), {}), rounds=ROUNDS, warmup_rounds=1
    )
    jobs = answer.jobs if name == "fetch" else answer
    assert len(jobs) == size
    assert all(jobs)
