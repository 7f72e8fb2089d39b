"""EnqueueJobs and GetJob: what goes in is what stands there."""

from datetime import UTC, datetime, timedelta

import pytest

from chokaq.lifecycle.states import JobStatus, KeyScope, Pillar
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session, Store
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import new_job, new_jobs
from tests.support.lab import Lab

YEAR = timedelta(days=400)
SOON = timedelta(seconds=20)


def test_a_new_job_is_pending_and_keeps_everything_it_was_given(session: Session, store: Store) -> None:
    job = new_job(
        payload='{"to":"user@example.com"}',
        priority=20,
        tags="tenant=7,urgent",
        created_by="web",
        headers='{"traceparent":"00-1"}',
        idempotency_key="email-user-123",
    )

    [answer] = session.enqueue_jobs([job])

    assert (answer.id, answer.created, answer.status, answer.payload_differs) == (
        job.id,
        True,
        JobStatus.PENDING,
        False,
    )
    view = session.get_job(job.id)
    assert view is not None
    assert (view.id, view.pillar, view.status, view.queue, view.type_key) == (
        job.id, Pillar.HOT, JobStatus.PENDING, job.queue, job.type_key
    )  # fmt: skip
    assert (view.payload, view.priority, view.tags, view.created_by, view.headers) == (
        job.payload, 20, "tenant=7,urgent", "web", job.headers
    )  # fmt: skip
    assert (view.idempotency_key, view.key_scope) == ("email-user-123", KeyScope.ACTIVE)
    assert (view.attempt_count, view.crash_count, view.lease, view.worker_id) == (0, 0, 0, None)
    assert (view.started_at, view.finished_at, view.cancel_requested_at, view.note) == (None, None, None, None)
    assert abs(view.created_at - store.now()) < SOON
    assert view.due_at == view.created_at


def test_times_come_back_as_aware_utc(session: Session, store: Store) -> None:
    job = new_job()
    session.enqueue_jobs([job])

    view = session.get_job(job.id)

    assert view is not None
    assert view.created_at.tzinfo is UTC
    assert store.now().tzinfo is UTC


def test_an_unknown_id_is_none_and_has_no_status(session: Session) -> None:
    assert session.get_job(new_id()) is None
    assert session.get_statuses([new_id()]) == [None]


def test_an_empty_set_answers_an_empty_list(session: Session) -> None:
    assert session.enqueue_jobs([]) == []
    assert session.get_statuses([]) == []


def test_answers_and_statuses_come_in_the_order_of_the_input(session: Session) -> None:
    jobs = new_jobs(20)
    shuffled = jobs[1::2] + jobs[::2][::-1]

    answers = session.enqueue_jobs(shuffled)

    assert [answer.id for answer in answers] == [job.id for job in shuffled]
    asked = [shuffled[3].id, new_id(), shuffled[0].id, shuffled[3].id]
    pending = JobStatus.PENDING
    assert session.get_statuses(asked) == [pending, None, pending, pending]


def test_a_thousand_jobs_of_mixed_kinds_go_in_one_call(session: Session, lab: Lab) -> None:
    jobs = [
        new_job(
            payload=f'{{"n":{n}}}',
            tags=f"t{n}" if n % 3 else None,
            priority=n % 7,
            idempotency_key=f"k{n}" if n % 2 else None,
        )
        for n in range(1000)
    ]

    answers = session.enqueue_jobs(jobs)

    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert all(answer.created for answer in answers)
    rows = {row["Id"]: row for row in lab.rows("JobsHot")}
    assert {job.id: (job.payload, job.tags, job.priority, job.idempotency_key) for job in jobs} == {
        key: (row["Payload"], row["Tags"], row["Priority"], row["IdempotencyKey"]) for key, row in rows.items()
    }
    assert session.get_statuses([job.id for job in jobs]) == [JobStatus.PENDING] * 1000


def test_a_repeat_finds_its_own_job_and_answers_created(session: Session, lab: Lab) -> None:
    jobs = new_jobs(3, idempotency_key=None)
    first = session.enqueue_jobs(jobs)
    before = lab.snapshot()

    again = session.enqueue_jobs(jobs)

    assert again == first
    assert lab.snapshot() == before


@pytest.mark.parametrize("end", ["fetched", "processing", "succeeded", "failed"])
@pytest.mark.parametrize("scope", [None, KeyScope.ACTIVE, KeyScope.RETAINED, KeyScope.WINDOW])
def test_a_repeat_finds_its_own_job_in_any_pillar(session: Session, lab: Lab, end: str, scope: KeyScope | None) -> None:
    """Design §3.10: ids are minted before the first try; a late repeat must not run the job a second time."""
    keyed = {} if scope is None else {"idempotency_key": "k", "key_scope": scope}
    window = {"key_window_ms": 60_000} if scope is KeyScope.WINDOW else {}
    job = new_job(**keyed, **window)
    session.enqueue_jobs([job])
    holder = Holder(session)
    status = _bring(holder, end)
    before = lab.snapshot()

    [answer] = session.enqueue_jobs([job])

    assert (answer.id, answer.created, answer.status) == (job.id, True, status)
    assert lab.snapshot() == before


def test_a_repeat_with_more_jobs_adds_only_the_new_ones(session: Session, lab: Lab) -> None:
    old, new = new_jobs(2), new_jobs(2)
    session.enqueue_jobs(old)

    answers = session.enqueue_jobs([new[0], old[0], new[1], old[1]])

    assert [answer.id for answer in answers] == [new[0].id, old[0].id, new[1].id, old[1].id]
    assert all(answer.created for answer in answers)
    assert lab.count("JobsHot") == 4


@pytest.mark.parametrize("days", [0.0, 0.5, 24.0, 26.0, 400.0])
def test_a_delay_counts_from_the_databases_now(session: Session, days: float) -> None:
    """24.8 days overflow a DATEDIFF in milliseconds, 25 an int in DATEADD."""
    job = new_job(delay_ms=int(days * 86_400_000))
    session.enqueue_jobs([job])

    view = session.get_job(job.id)

    assert view is not None
    assert view.due_at - view.created_at == timedelta(days=days)


@pytest.mark.parametrize("offset", [YEAR, timedelta(seconds=30), timedelta(0), -timedelta(days=3)])
def test_an_instant_is_stored_as_given_and_wins_over_a_delay(session: Session, store: Store, offset: timedelta) -> None:
    instant = (store.now() + offset).replace(microsecond=123_000)
    job = new_job(due_at=instant, delay_ms=5_000)
    session.enqueue_jobs([job])

    view = session.get_job(job.id)

    assert view is not None
    assert view.due_at == instant


def test_an_instant_in_another_zone_is_the_same_instant(session: Session) -> None:
    from zoneinfo import ZoneInfo

    instant = datetime(2031, 7, 1, 12, 30, 15, 987_000, tzinfo=ZoneInfo("Asia/Tokyo"))
    job = new_job(due_at=instant)
    session.enqueue_jobs([job])

    view = session.get_job(job.id)

    assert view is not None
    assert view.due_at == instant
    assert view.due_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("bad", ["", "pfad-ü", "почта", "a\0b", "line\nbreak", "x" * 256])
@pytest.mark.parametrize("field", ["queue", "type_key"])
def test_a_name_the_store_cannot_keep_is_refused_with_its_field(
    session: Session, lab: Lab, field: str, bad: str
) -> None:
    good = new_job()

    with pytest.raises(StoreRefused, match=r"(?i)queue|type"):
        session.enqueue_jobs([good, new_job(**{field: bad})])

    assert lab.count("JobsHot") == 0
    assert [answer.created for answer in session.enqueue_jobs([good])] == [True]


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": "a\0b"},
        {"created_by": "a\0b"},
        {"idempotency_key": "a\0b"},
        {"payload": '"a\0b"'},
        {"payload": '"é"'},
        {"headers": '{"a":"é"}'},
        {"tags": "\ud800"},
    ],
)
def test_a_text_the_store_cannot_keep_is_refused_and_nothing_of_the_call_is_stored(
    session: Session, lab: Lab, fields: dict[str, str]
) -> None:
    with pytest.raises(StoreRefused):
        session.enqueue_jobs([new_job(), new_job(**fields)])

    assert lab.count("JobsHot") == 0


def _bring(holder: Holder, end: str) -> JobStatus:
    from chokaq.lifecycle.states import FailureReason
    from chokaq.store.records import Failure

    held = holder.claim_one()
    if end == "fetched":
        return JobStatus.FETCHED
    holder.start([held])
    if end == "processing":
        return JobStatus.PROCESSING
    if end == "succeeded":
        holder.succeed([held])
        return JobStatus.SUCCEEDED
    holder.session.archive_failed(
        holder.worker, [Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR)]
    )
    return JobStatus.FAILED
