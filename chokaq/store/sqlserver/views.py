"""Turns the rows of the procedures, read by position, into records: those that only this store makes (see chokaq.store.views)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from chokaq.store.records import Cancellation, FetchedJob, PriorityView, QueueView, Released
from chokaq.store.views import Views, live_queue

_MILLISECOND = timedelta(milliseconds=1)


def aware(instant: datetime) -> datetime:
    """A time of the database, which is UTC without saying so."""
    return instant.replace(tzinfo=UTC)


def aware_or_none(instant: datetime | None) -> datetime | None:
    """Like `aware`."""
    return None if instant is None else instant.replace(tzinfo=UTC)


VIEWS = Views(aware)


def fetched_job(row: Sequence[Any], now: datetime) -> FetchedJob:
    """A row of FetchJobs; `now` as the database told it in the same answer."""
    job_id, kind, payload, lease, priority, attempts, crashes, created, due, age_from, tags, created_by, headers = row
    return FetchedJob(
        id=job_id,
        type_key=kind,
        payload=payload,
        lease=lease,
        priority=priority,
        attempt_count=attempts,
        crash_count=crashes,
        created_at=created.replace(tzinfo=UTC),
        due_at=due.replace(tzinfo=UTC),
        age_ms=max((now - age_from) // _MILLISECOND, 0),
        tags=tags,
        created_by=created_by,
        headers=headers,
    )


def cancellations(rows: Sequence[Sequence[Any]]) -> list[Cancellation]:
    """Rows of (JobId, LeaseNumber, Actor, Reason)."""
    return [Cancellation(*row) for row in rows]


def queue_view(row: Sequence[Any]) -> QueueView:
    """A row of ListQueues."""
    name, *overrides = row[:7]
    pending, scheduled, fetched, processing, ok, bad, again, oldest, live, known, at, by, running = row[7:]
    return QueueView(
        name=name,
        live=live_queue(overrides),
        pending=pending,
        scheduled=scheduled,
        fetched=fetched,
        processing=processing,
        succeeded_total=int(ok),
        failed_total=int(bad),
        retried_total=int(again),
        oldest_due_ms=None if oldest is None else max(oldest, 0),
        live_workers=live,
        known=bool(known),
        updated_at=aware_or_none(at),
        updated_by=by,
        oldest_running_ms=None if running is None else max(running, 0),
    )


def priority_view(row: Sequence[Any]) -> PriorityView:
    """A row of ListPriorities."""
    priority, waiting, oldest = row
    return PriorityView(priority, waiting, max(oldest, 0))


def released(row: Sequence[Any]) -> Released:
    """A row of ReleaseWorker, or the longer one of RecoverAbandoned and ArchiveZombies, with the next page's place."""
    pending, zombies, poisoned, failed, cancelled, done, *place = row
    return Released(
        pending=pending,
        zombies=zombies,
        poisoned=poisoned,
        failed=failed,
        cancelled=cancelled,
        done=bool(done),
        cursor=f"{place[0]}:{place[1]}" if place and place[0] is not None else None,
    )
