"""The demo's verdict."""

from chokaq.demo.accounting import JobFate, account, percentile
from chokaq.lifecycle.states import JobStatus


def fate(name: str, status: JobStatus | None, *, crashed: bool = False) -> JobFate:
    return JobFate(id=name, status=status, lag_ms=10.0, crashed=crashed)


def test_a_job_that_succeeded_without_arriving_is_lost() -> None:
    line = account("q", [fate("a", JobStatus.SUCCEEDED)], {}, retried=0, seconds=1)
    assert (line.succeeded, line.received, line.lost) == (1, 0, 1)


def test_a_job_the_store_does_not_know_is_lost_even_when_it_arrived() -> None:
    assert account("q", [fate("a", None)], {"a": 1}, retried=0, seconds=1).lost == 1


def test_only_the_killed_childs_jobs_may_arrive_twice() -> None:
    fates = [fate("a", JobStatus.SUCCEEDED, crashed=True), fate("b", JobStatus.SUCCEEDED)]
    line = account("q", fates, {"a": 2, "b": 3}, retried=0, seconds=1)
    assert (line.duplicates, line.unexplained) == (3, 2)


def test_every_end_has_its_column() -> None:
    states = [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.ZOMBIE, JobStatus.PROCESSING]
    fates = [fate(str(number), status) for number, status in enumerate(states)]
    line = account("q", fates, {"0": 1}, retried=7, seconds=2)
    assert (line.enqueued, line.succeeded, line.failed, line.zombie, line.unfinished) == (4, 1, 1, 1, 1)
    assert (line.retried, line.lost, line.jobs_per_second) == (7, 0, 1.0)


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([], 0.5) == 0.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert percentile([1.0, 2.0], 0.99) == 2.0
