"""Looking at jobs, and cancelling them."""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from chokaq.jobs.ids import new_id
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations.actor import By
from chokaq.operations.errors import OperationError
from chokaq.store.claims import ClaimView
from chokaq.store.protocol import Session
from chokaq.store.records import Attempt, AuditEntry, CancelAnswer, JobFilter, JobView, Page

Word = TypeVar("Word")

MAX_BATCH = 1_000
MAX_PAGE = 500
SHOWN_AUDIT = 50

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class JobDetail(msgspec.Struct, frozen=True):
    """A job with its history."""

    job: JobView
    attempts: list[Attempt]
    audit: list[AuditEntry]
    claims: list[ClaimView] = []
    """The idempotency keys that its runs hold or have completed, with what these kept."""


def check_id(text: str) -> str:
    """A job id in its stored form. Raises OperationError when it cannot be one."""
    wanted = text.strip().upper()
    if not _ULID.fullmatch(wanted):
        raise OperationError(f"{text[:60]!r} is not a job id: an id is a ULID of 26 letters and digits")
    return wanted


def cancel_jobs(session: Session, job_ids: Sequence[str], who: By) -> list[CancelAnswer]:
    """Cancel 1 to 1,000 jobs, each named once or more; one answer per distinct job, in the order named.

    A job that waits is cancelled at once; one that runs is told; one that has ended stays as it is.
    """
    distinct = list(dict.fromkeys(check_id(job_id) for job_id in job_ids))
    if not 1 <= len(distinct) <= MAX_BATCH:
        raise OperationError(f"cancel 1 to {MAX_BATCH:,} jobs at a time, not {len(distinct):,}")
    return session.cancel_jobs(distinct, who.actor, who.reason, request=new_id())


def show_job(session: Session, job_id: str) -> JobDetail:
    """A job with payload, failed attempts, idempotency keys, what operators did to it. Raises OperationError when there is none."""
    wanted = check_id(job_id)
    job = session.get_job(wanted)
    if job is None:
        raise OperationError(f"there is no job {wanted}: never enqueued here, not committed yet, or purged")
    return JobDetail(
        job, session.list_attempts(wanted), session.list_audit(wanted, SHOWN_AUDIT), session.list_claims(wanted)
    )


def list_jobs(session: Session, where: JobFilter, limit: int = 50, after: str | None = None) -> Page:
    """One page of a pillar, newest first. `limit`: 1 to 500; `after`: of the page before."""
    if not 1 <= limit <= MAX_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_PAGE} jobs, not {limit:,}")
    return session.list_jobs(where, limit, None if after is None else check_id(after))


def job_filter(
    *,
    pillar: str | None = None,
    queue: str | None = None,
    status: str | None = None,
    type_key: str | None = None,
    reason: str | None = None,
    tag: str | None = None,
) -> JobFilter:
    """A filter out of words, whatever their case. A status decides the pillar; a reason means the DLQ; else Hot.

    Raises OperationError when a word means nothing, or the pillar does not hold that status.
    """
    chosen = None if status is None else _word("status", status, {item.label: item for item in JobStatus})
    cause = None if reason is None else _word("reason", reason, {item.label: item for item in FailureReason})
    place = None if pillar is None else _word("pillar", pillar, {item.value: item for item in Pillar})
    implied = _pillar_of(chosen) if chosen is not None else Pillar.DLQ if cause is not None else None
    if place is not None and implied is not None and place != implied:
        told = chosen.label if chosen is not None else "a failure reason"
        raise OperationError(f"{told} stands in the pillar {implied.value}, not in {place.value}: leave the pillar out")
    return JobFilter(
        pillar=place or implied or Pillar.HOT,
        queue=queue,
        status=chosen,
        type_key=type_key,
        reason=cause,
        tag=tag,
    )


def _pillar_of(status: JobStatus) -> Pillar:
    if status < JobStatus.SUCCEEDED:
        return Pillar.HOT
    return Pillar.ARCHIVE if status == JobStatus.SUCCEEDED else Pillar.DLQ


def _word(what: str, word: str, known: dict[str, Word]) -> Word:
    folded = word.lower().replace("_", "").replace("-", "")
    for name, value in known.items():
        if name.lower() == folded:
            return value
    raise OperationError(f"there is no {what} {word!r}; it is one of {', '.join(known)}")
