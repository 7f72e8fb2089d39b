"""BrowseJobs: pages in both orders and both directions meet every job once; a filter that nothing fits costs a bounded look."""

import itertools
from datetime import UTC, datetime

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store import looking
from chokaq.store.looking import Browse, Place
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Failure, JobView
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab

BASE_MS = 1_780_000_000_000


def pages(session: Session, where: Browse, limit: int) -> list[JobView]:
    """Every page to the end."""
    found: list[JobView] = []
    after: Place | None = None
    for _ in range(100):
        page = session.browse_jobs(where, limit, after)
        assert len(page.jobs) <= limit
        found += page.jobs
        after = page.after
        if after is None:
            assert not page.partial
            return found
    raise AssertionError("the pages do not come to an end")


def ended(
    session: Session, lab: Lab, pillar: Pillar, queues: tuple[str, ...], count: int
) -> list[tuple[int, str, str]]:
    """Jobs that ended in an order of their own, two at each instant: (end, id, queue)."""
    told = []
    table, column = ("JobsArchive", "FinishedAtUtc") if pillar is Pillar.ARCHIVE else ("JobsDLQ", "FailedAtUtc")
    for queue in queues:
        holder = Holder(session, queue)
        session.enqueue_jobs(new_jobs(count, queue=queue))
        held = holder.take(count)
        if pillar is Pillar.ARCHIVE:
            holder.succeed(held)
        else:
            session.archive_failed(
                holder.worker, [Failure(one.id, one.lease, JobStatus.FAILED, FailureReason.TIMEOUT) for one in held]
            )
        for place, one in enumerate(held):
            at = BASE_MS + (place * 7 % count) // 2 * 1_000
            lab.set_time(one.id, column, at, table)
            told.append((at, one.id, queue))
    return told


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_by_id_meet_every_job_once(session: Session, limit: int, descending: bool) -> None:
    jobs = new_jobs(12)
    session.enqueue_jobs(jobs)

    found = [job.id for job in pages(session, Browse(descending=descending), limit)]

    assert found == sorted((job.id for job in jobs), reverse=descending)


@pytest.mark.parametrize("pillar", [Pillar.ARCHIVE, Pillar.DLQ])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("limit", [1, 4, 100])
def test_pages_by_end_meet_every_job_of_every_queue_once(
    session: Session, lab: Lab, pillar: Pillar, descending: bool, limit: int
) -> None:
    told = ended(session, lab, pillar, (QUEUE, "other", "third"), 6)
    where = Browse(pillar=pillar, by_end=True, descending=descending)

    found = pages(session, where, limit)

    assert [job.id for job in found] == [job_id for _, job_id, _ in sorted(told, reverse=descending)]


def test_by_end_within_one_queue_and_a_range(session: Session, lab: Lab) -> None:
    told = ended(session, lab, Pillar.ARCHIVE, (QUEUE, "other"), 6)
    first, last = (datetime.fromtimestamp(ms / 1_000, UTC) for ms in (BASE_MS + 1_000, BASE_MS + 2_000))
    where = Browse(pillar=Pillar.ARCHIVE, by_end=True, queue="other", ended_from=first, ended_until=last)

    found = [job.id for job in pages(session, where, 1)]

    expected = sorted((at, job_id) for at, job_id, queue in told if queue == "other" and at == BASE_MS + 1_000)
    assert found == [job_id for _, job_id in reversed(expected)]
    by_id = Browse(pillar=Pillar.ARCHIVE, queue="other", ended_from=first, ended_until=last)
    assert sorted(job.id for job in pages(session, by_id, 1)) == sorted(found)


@pytest.mark.parametrize("by_end", [True, False])
@pytest.mark.parametrize("descending", [True, False])
def test_a_filter_that_hardly_fits_looks_at_so_many_rows_a_page_and_finds_all_in_the_end(
    session: Session, lab: Lab, monkeypatch: pytest.MonkeyPatch, by_end: bool, descending: bool
) -> None:
    for bound in ("LOOK", "LOOK_BY_END", "LOOK_OF_EACH"):
        monkeypatch.setattr(looking, bound, 4)
    told = ended(session, lab, Pillar.DLQ, (QUEUE, "other"), 9)
    wanted = {told[0][1], told[8][1], told[12][1]}
    for job_id in wanted:
        lab.put(job_id, "JobsDLQ", Type="rare.v1")
    where = Browse(pillar=Pillar.DLQ, type_key="rare.v1", by_end=by_end, descending=descending)

    first = session.browse_jobs(where, 50)
    found = pages(session, where, 50)

    assert first.partial
    assert first.after is not None
    assert {job.id for job in found} == wanted
    assert len(found) == 3
    order = {job_id: (at if by_end else 0, job_id) for at, job_id, _ in told}
    keys = [order[job.id] for job in found]
    assert keys == sorted(keys, reverse=descending)


def test_the_filters_of_the_dlq(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs([*new_jobs(2, tags="acme,urgent"), new_job(type_key="report.v1")])
    one, two, three = holder.take(3)
    session.archive_failed(
        holder.worker,
        [
            Failure(one.id, one.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, AttemptError("KeyError", "no 'x'")),
            Failure(two.id, two.lease, JobStatus.CANCELLED, FailureReason.CANCELLED),
            Failure(
                three.id, three.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, AttemptError("OSError", "Disk full")
            ),
        ],
    )
    expected = {
        Browse(pillar=Pillar.DLQ, reason=FailureReason.FATAL_ERROR): {one.id, three.id},
        Browse(pillar=Pillar.DLQ, error_type="KeyError"): {one.id},
        Browse(pillar=Pillar.DLQ, status=JobStatus.CANCELLED): {two.id},
        Browse(pillar=Pillar.DLQ, tag="urgent"): {one.id, two.id},
        Browse(pillar=Pillar.DLQ, text="disk FULL"): {three.id},
        Browse(pillar=Pillar.DLQ, type_key="report.v1"): {three.id},
        Browse(pillar=Pillar.DLQ, queue="other"): set(),
        Browse(pillar=Pillar.ARCHIVE, reason=FailureReason.FATAL_ERROR): set(),
        Browse(pillar=Pillar.HOT, by_end=True): set(),
    }

    for where, wanted in expected.items():
        assert {job.id for job in pages(session, where, 10)} == wanted, where


def test_running_jobs_are_found_behind_any_number_of_waiting_ones(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOOK", 5)
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    running, buffered = holder.claim(3)[:2], holder.request
    holder.start(running[:1])
    session.enqueue_jobs(new_jobs(20))

    assert buffered == 1
    assert [job.id for job in pages(session, Browse(status=JobStatus.PROCESSING), 10)] == [running[0].id]
    assert len(pages(session, Browse(status=JobStatus.FETCHED), 10)) == 2


def test_the_families_are_counted_the_largest_first(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(6))
    held = holder.take(6)
    errors = [AttemptError("OSError", "disk " * 100), AttemptError("OSError", "last"), AttemptError("KeyError", "x")]
    for one, error in zip(held, itertools.cycle(errors), strict=False):
        failure = Failure(one.id, one.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, error)
        session.archive_failed(holder.worker, [failure])
    newest_io = max(one.id for place, one in enumerate(held) if place % 3 < 2)
    dropped = next(one.id for place, one in enumerate(held) if place % 3 == 2)
    session.drop_jobs([dropped], "anna", "done")

    families = session.list_families()

    assert [(one.error_type, one.count, one.reason) for one in families] == [
        ("OSError", 4, FailureReason.FATAL_ERROR),
        ("KeyError", 1, FailureReason.FATAL_ERROR),
    ]
    expected = "last" if [one.id for one in held].index(newest_io) % 3 == 1 else ("disk " * 100)[:200]
    assert families[0].message == expected
    assert session.list_families("other") == []
    assert len(session.list_families(limit=1)) == 1


def test_series_are_summed_into_steps(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    held = holder.take(3)
    holder.succeed(held[:1])
    lab.age_all("MetricBuckets", "StartUtc", 600_000)
    holder.succeed(held[1:2])
    session.archive_failed(holder.worker, [Failure(held[2].id, held[2].lease, JobStatus.FAILED, FailureReason.TIMEOUT)])

    hour = session.read_series(None, 30, 120)
    recent = session.read_series(QUEUE, 30, 2)

    assert sum(row.count for row in hour.rows) == 3
    assert {row.start <= hour.current <= hour.now for row in hour.rows} == {True}
    assert all(int(row.start.timestamp()) % 30 == 0 for row in hour.rows)
    assert sum(row.count for row in recent.rows) == 2
    assert {row.reason for row in recent.rows if row.outcome == 1} == {FailureReason.TIMEOUT}
    assert sum(sum(row.lag) for row in recent.rows) == 2
    assert session.read_series("other", 30, 120).rows == []
