"""PreviewDLQ, and the filters of lists that a DLQ needs: ranges and literal search (C44, G17)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Failure, JobFilter
from chokaq.store.repairs import DlqFilter, DlqPreview
from tests.support.holder import Holder
from tests.support.jobs import ERROR, QUEUE, TYPE, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stopped import fail, stopped

HOUR = 3_600_000
START = datetime(2031, 5, 6, 7, 8, 9, 123_000, tzinfo=UTC)


def failed(session: Session, *errors: AttemptError, **fields: Any) -> list[str]:
    """A failed job for each error; ids in order."""
    jobs = [new_job(**fields) for _ in errors]
    session.enqueue_jobs(jobs)
    holder = Holder(session)
    held = {h.id: h for h in holder.take_all(len(jobs))}
    session.archive_failed(
        holder.worker,
        [
            Failure(job.id, held[job.id].lease, JobStatus.FAILED, FailureReason.TRANSIENT, error)
            for job, error in zip(jobs, errors, strict=True)
        ],
    )
    return [job.id for job in jobs]


def hours(lab: Lab, ids: list[str]) -> None:
    """Let the jobs have stopped at START and every hour from then on."""
    for number, job_id in enumerate(ids):
        at = (START - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) + number * HOUR
        lab.set_time(job_id, "FailedAtUtc", at, "JobsDLQ")


def shown_by_list(session: Session, **where: Any) -> set[str]:
    """Ids of all pages of the list, two a page."""
    found: set[str] = set()
    after: str | None = None
    while True:
        page = session.list_jobs(JobFilter(pillar=Pillar.DLQ, **where), 2, after)
        found |= {job.id for job in page.jobs}
        after = page.after
        if after is None:
            return found


def shown_by_preview(session: Session, **where: Any) -> set[str]:
    """Ids of the preview."""
    preview = session.preview_dlq(DlqFilter(**where), 1_000)
    assert (preview.matched, preview.more) == (len(preview.ids), False)
    return set(preview.ids)


Shown = Callable[..., set[str]]
both = pytest.mark.parametrize("shown", [shown_by_list, shown_by_preview], ids=["list", "preview"])


def test_a_preview_counts_and_names_the_newest_by_when_they_stopped(session: Session, lab: Lab) -> None:
    """The order is that of stopping, not of ids; equal instants go by id."""
    ids = fail(session, new_jobs(6))
    hours(lab, [*ids[3:5], ids[0], ids[5], ids[1], ids[2]])
    lab.set_time(ids[5], "FailedAtUtc", lab.row(ids[0], "JobsDLQ")["FailedAtUtc"], "JobsDLQ")
    order = [ids[2], ids[1], ids[5], ids[0], ids[4], ids[3]]

    assert session.preview_dlq(DlqFilter()) == DlqPreview(6, False, order)
    assert session.preview_dlq(DlqFilter(), 2) == DlqPreview(6, False, order[:2])
    assert session.preview_dlq(DlqFilter(), 0) == DlqPreview(6, False, order[:1])
    assert session.preview_dlq(DlqFilter(queue="nobody")) == DlqPreview(0, False, [])


def test_an_empty_dlq_has_an_empty_preview(session: Session) -> None:
    session.enqueue_jobs(new_jobs(2))
    for where in (DlqFilter(), DlqFilter(search="email")):
        assert session.preview_dlq(where) == DlqPreview(0, False, [])


@both
def test_a_filter_means_what_it_says(session: Session, shown: Shown) -> None:
    known = {
        "fatal": fail(session, [new_job(tags="100% sure")])[0],
        "timeout": fail(session, [new_job(queue="other", tags="1000")], FailureReason.TIMEOUT, "other")[0],
        "report": fail(session, [new_job(type_key="report.v1")], FailureReason.TIMEOUT)[0],
        "cancelled": stopped(session, JobStatus.CANCELLED),
        "dropped": stopped(session, JobStatus.DROPPED, new_job(queue="other")),
    }

    def names(**where: Any) -> set[str]:
        found = shown(session, **where)
        return {name for name, job_id in known.items() if job_id in found}

    assert names() == set(known)
    assert names(queue=QUEUE) == {"fatal", "report", "cancelled"}
    assert names(type_key=TYPE) == {"fatal", "timeout", "cancelled", "dropped"}
    assert names(reason=FailureReason.TIMEOUT) == {"timeout", "report"}
    assert names(reason=FailureReason.TIMEOUT, queue="other") == {"timeout"}
    assert names(status=JobStatus.DROPPED) == {"dropped"}
    assert names(status=JobStatus.CANCELLED, queue="other") == set()
    assert names(tag="100%") == {"fatal"}
    assert names(tag="100") == {"fatal", "timeout"}


@both
def test_a_range_holds_its_beginning_and_not_its_end(session: Session, lab: Lab, shown: Shown) -> None:
    ids = fail(session, new_jobs(4))
    hours(lab, ids)
    second, third = START + timedelta(hours=1), START + timedelta(hours=2)
    tick = timedelta(milliseconds=1)
    elsewhere = third.astimezone(tz=None)

    assert shown(session, failed_from=second) == set(ids[1:])
    assert shown(session, failed_until=third) == set(ids[:2])
    assert shown(session, failed_from=second, failed_until=third) == {ids[1]}
    assert shown(session, failed_from=second + tick, failed_until=elsewhere + tick) == {ids[2]}
    assert shown(session, failed_from=datetime(1969, 1, 1, tzinfo=UTC)) == set(ids)
    assert shown(session, failed_until=datetime(1971, 1, 1, tzinfo=UTC)) == set()
    assert shown(session, failed_from=datetime(9999, 12, 31, tzinfo=UTC)) == set()
    with pytest.raises(StoreRefused, match="failed_from"):
        shown(session, failed_from=second.replace(tzinfo=None))


@both
@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("%", {"100% full"}),
        ("_", {"a_b"}),
        ("[a]", {"[a]"}),
        ("[", {"[a]"}),
        ("^", {"^"}),
        ("\\", {"back\\slash"}),
        ("'", {"it's"}),
        ('say "no"', {'say "no"\nand leave'}),
        ('"no"\nand', {'say "no"\nand leave'}),
        ("TIMED Out", {"Timed out"}),
        ("счёт", {"счёт-7"}),
        ("😀", {"smile 😀"}),
        ("nowhere", set()),
    ],
)
def test_a_search_is_literal(session: Session, shown: Shown, search: str, expected: set[str]) -> None:
    """G17: the reference's wildcards stood for anything, and a multi-line error was never found."""
    texts = [
        "100% full", "100 full", "a_b", "acb", "[a]", "^", "back\\slash", "it's", 'say "no"\nand leave', "Timed out", "счёт-7",
        "smile 😀",
    ]  # fmt: skip
    by_text = dict(zip(texts, failed(session, *(AttemptError("E", text) for text in texts)), strict=True))

    assert shown(session, search=search) == {by_text[text] for text in expected}


@both
def test_a_search_looks_at_id_type_tags_error_type_and_message(session: Session, shown: Shown) -> None:
    plain = AttemptError("E", "m")
    [by_type] = failed(session, plain, type_key="Report.Monthly.v1")
    [by_tags] = failed(session, plain, tags="customer 7")
    [by_error_type] = failed(session, AttemptError("ConnectionError", "m"))
    [by_message] = failed(session, AttemptError("E", "the mail server hung up"))
    without = stopped(session, JobStatus.CANCELLED, new_job(payload='{"hidden":"treasure"}'))

    assert shown(session, search="report.monthly") == {by_type}
    assert shown(session, search="CUSTOMER 7") == {by_tags}
    assert shown(session, search="connectionerr") == {by_error_type}
    assert shown(session, search="hung up") == {by_message}
    assert shown(session, search=without[8:].lower()) == {without}
    assert shown(session, search="treasure") == set(), "C44: payloads are never read"
    assert shown(session, search="mail", queue="nobody") == set()
    assert len(shown(session, search=" ")) == 5


@pytest.mark.parametrize("pillar", list(Pillar))
def test_every_pillar_can_be_searched(session: Session, pillar: Pillar) -> None:
    session.enqueue_jobs([new_job(tags="red Fox"), new_job(tags="blue fox"), new_job(type_key="fox.v1"), new_job()])
    holder = Holder(session)
    if pillar is Pillar.ARCHIVE:
        holder.succeed(holder.take_all(4))
    elif pillar is Pillar.DLQ:
        failures = [
            Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.TRANSIENT, ERROR) for h in holder.take_all(4)
        ]
        session.archive_failed(holder.worker, failures)

    found = [session.list_jobs(JobFilter(pillar=pillar, search=text)).jobs for text in ("fox", "blue f", "wolf")]

    assert [len(jobs) for jobs in found] == [3, 1, 0]
    if pillar is Pillar.HOT:
        holder.take(4)
        running = JobFilter(status=JobStatus.PROCESSING, search="fox")
        assert len(session.list_jobs(running).jobs) == 3
    if pillar is not Pillar.DLQ:
        assert session.list_jobs(JobFilter(pillar=pillar, failed_from=START.replace(year=1999))).jobs == []


def copies(lab: Lab, job_id: str, count: int) -> None:
    """That many copies of a stopped job with small ids, made by the engine itself: enqueueing ten thousand would take long."""
    names = [name for name in lab.row(job_id, "JobsDLQ") if name != "Id"]
    digits = " UNION ALL ".join(f"SELECT {n} AS D" for n in range(10))
    number = "a.D + 10 * b.D + 100 * c.D + 1000 * d.D"
    if lab.kind == "sqlite":
        made = f"'0000000000000000000001' || SUBSTR('0000' || ({number}), -4)"
    else:
        made = f"'0000000000000000000001' + RIGHT('0000' + CAST({number} AS varchar(5)), 4)"
    lab.execute(
        f"INSERT INTO {{JobsDLQ}} (Id, {', '.join(names)}) SELECT {made}, {', '.join(f'h.{name}' for name in names)}"
        f" FROM {{JobsDLQ}} h CROSS JOIN ({digits}) a CROSS JOIN ({digits}) b CROSS JOIN ({digits}) c CROSS JOIN ({digits}) d"
        f" WHERE h.Id = ? AND {number} < {count}",
        job_id,
    )


def test_a_preview_counts_to_ten_thousand_and_a_search_looks_no_further(session: Session, lab: Lab) -> None:
    """C44, and bounded: what lies beyond the newest 10,000 that fit the rest is not searched; the preview says so."""
    old, bulk = stopped(session, JobStatus.CANCELLED), stopped(session, JobStatus.CANCELLED)
    lab.age(old, "FailedAtUtc", 9 * HOUR, "JobsDLQ")
    lab.put(old, "JobsDLQ", ErrorMessage="needle", Tags="mine", Id="0" * 26)
    old = "0" * 26
    copies(lab, bulk, 9_998)
    needles = JobFilter(pillar=Pillar.DLQ, search="NEEDLE")

    assert session.preview_dlq(DlqFilter(), 1) == DlqPreview(10_000, False, [bulk])
    assert session.preview_dlq(DlqFilter(search="NEEDLE")) == DlqPreview(1, False, [old])
    assert [job.id for job in session.list_jobs(needles).jobs] == [old]

    stopped(session, JobStatus.CANCELLED)

    preview = session.preview_dlq(DlqFilter(), 5_000)
    assert (preview.matched, preview.more, len(preview.ids)) == (10_000, True, 1_000)
    assert old not in preview.ids
    assert session.preview_dlq(DlqFilter(search="needle")) == DlqPreview(0, True, [])
    assert session.list_jobs(needles).jobs == []
    assert session.preview_dlq(DlqFilter(search=TYPE), 1).matched == 10_000
    assert session.preview_dlq(DlqFilter(search="needle", tag="mine")) == DlqPreview(1, False, [old])
    narrowed = JobFilter(pillar=Pillar.DLQ, search="needle", tag="mine")
    assert [job.id for job in session.list_jobs(narrowed).jobs] == [old]
