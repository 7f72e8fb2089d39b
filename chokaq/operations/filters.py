"""Filters out of words and texts, whatever their case: what a list shows, and what an action by filter means."""

from datetime import datetime, timedelta
from typing import TypeVar

from chokaq.jobs import envelope
from chokaq.jobs.errors import EnqueueError
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations.errors import OperationError
from chokaq.operations.queues import check_queue
from chokaq.store.records import JobFilter
from chokaq.store.repairs import COUNTED, DlqFilter

Word = TypeVar("Word")

MAX_TEXT = 1_000
"""Characters of a tag or a text to search for."""
SEARCHED = COUNTED
"""Jobs a search looks at: the newest that fit the rest of the filter."""
MAX_AGE = timedelta(days=36_525)
"""A hundred years."""

STATUSES = {status.label: status for status in JobStatus}
REASONS = {reason.label: reason for reason in FailureReason}


def job_filter(
    *,
    pillar: str | None = None,
    queue: str | None = None,
    status: str | None = None,
    type_key: str | None = None,
    reason: str | None = None,
    tag: str | None = None,
) -> JobFilter:
    """Which jobs a list shows. A status decides the pillar; a reason means the DLQ; else Hot.

    Raises OperationError when a word means nothing, or the pillar does not hold that status.
    """
    chosen = None if status is None else _word("status", status, STATUSES)
    cause = None if reason is None else _word("reason", reason, REASONS)
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


def dlq_filter(
    *,
    queue: str | None = None,
    type_key: str | None = None,
    reason: str | None = None,
    status: str | None = None,
    tag: str | None = None,
    failed_from: datetime | None = None,
    failed_until: datetime | None = None,
    older_than: float | None = None,
    now: datetime | None = None,
    search: str | None = None,
) -> DlqFilter:
    """Which jobs of the DLQ an action by filter means.

    `failed_from`, `failed_until`: aware instants; `older_than`: stopped longer ago than that many seconds, counted back from
    `now`, the database's clock. Raises OperationError when a word means nothing or a bound is out of range or inverted.
    """
    chosen = None if status is None else _word("status", status, STATUSES)
    if chosen is not None and _pillar_of(chosen) != Pillar.DLQ:
        raise OperationError(f"{chosen.label} stands in the pillar {_pillar_of(chosen).value}, not in the DLQ")
    for name, instant in (("failed_from", failed_from), ("failed_until", failed_until)):
        if instant is not None and instant.utcoffset() is None:
            raise OperationError(f"{name} needs a time zone: {instant.isoformat()} names no instant")
    if older_than is not None:
        if failed_until is not None:
            raise OperationError("give either an age or a latest instant, not both")
        failed_until = _back(older_than, now)
    if failed_from is not None and failed_until is not None and failed_from > failed_until:
        raise OperationError(
            f"no job can have stopped from {failed_from.isoformat()} until {failed_until.isoformat()}: "
            "the earlier instant comes first"
        )
    return DlqFilter(
        queue=None if queue is None else check_queue(queue),
        type_key=None if type_key is None else _checked_type(type_key),
        reason=None if reason is None else _word("reason", reason, REASONS),
        status=chosen,
        tag=_text("tag", tag),
        failed_from=failed_from,
        failed_until=failed_until,
        search=_text("text to search for", search),
    )


def _back(older_than: float, now: datetime | None) -> datetime:
    if now is None:
        raise OperationError("an age needs the database's clock to be counted back from")
    if not 0 < older_than <= MAX_AGE.total_seconds():
        raise OperationError(f"the age must be above 0 and at most a hundred years, got {older_than:g} s")
    return now - timedelta(seconds=older_than)


def _checked_type(type_key: str) -> str:
    try:
        return envelope.check_name("type key", type_key)
    except EnqueueError as error:
        raise OperationError(str(error)) from None


def _text(what: str, text: str | None) -> str | None:
    if text is None:
        return None
    if not text.strip():
        raise OperationError(f"the {what} is blank: leave it out")
    try:
        return envelope.check_text(f"the {what}", text, MAX_TEXT)
    except EnqueueError as error:
        raise OperationError(str(error)) from None


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
