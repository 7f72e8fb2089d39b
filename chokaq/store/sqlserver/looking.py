"""What The Deck asks: ReadChanges, ReadSeries, BrowseJobs, ListFamilies; and SignOut."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.looking import (
    LONGEST_SESSION_MS,
    MAX_WATCHED,
    Browse,
    BrowsePage,
    BucketMark,
    Changes,
    Family,
    Place,
    Series,
    SeriesRow,
    Watched,
    check_session,
)
from chokaq.store.records import JobView
from chokaq.store.repairs import needle
from chokaq.store.sqlserver import documents, views
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.operators import MAX_PAGE
from chokaq.store.sqlserver.views import aware, aware_or_none

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_2020 = datetime(2020, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class LookingOperations(Calling):
    """See `chokaq.store.looking.LookingSession`."""

    def read_changes(self, watched: Sequence[str] = (), signed_out_since: int | None = None) -> Changes:
        """Marks of everything that can change, and the jobs looked at."""
        ids = documents.ids(list(dict.fromkeys(watched))[:MAX_WATCHED])
        since = -1 if signed_out_since is None else signed_out_since
        [marks], newest, buckets, leases, found, *signed_out = self._call("ReadChanges", ids, since)
        now, audit, order, told, failures, changed, live, draining, beat = marks
        return Changes(
            now=aware(now),
            audit=audit,
            order=order,
            circuits=(told, int(failures), aware_or_none(changed)),
            workers=(live, draining, aware_or_none(beat)),
            newest=[(job_id, queue) for job_id, queue in newest],
            buckets=[BucketMark(second, queue, outcome, int(count)) for second, queue, outcome, count in buckets],
            leases={queue: int(count) for queue, count in leases},
            watched=[_watched(row) for row in found],
            signed_out={name: int(remaining) for rows in signed_out for name, remaining in rows},
        )

    def sign_out(self, session: str, remaining_ms: int) -> None:
        """End a session of The Deck for all of its processes."""
        self._call("SignOut", check_session(session), max(0, min(remaining_ms, LONGEST_SESSION_MS)))

    def read_series(self, queue: str | None, step_seconds: int, steps: int) -> Series:
        """Outcome counters in steps, summed over slots."""
        [[now, current]], rows = self._call("ReadSeries", queue or "", step_seconds, steps)
        length = timedelta(seconds=step_seconds)
        return Series(aware(now), _EPOCH_2020 + current * length, [_series_row(row, length) for row in rows])

    def list_families(self, queue: str | None = None, limit: int = 5) -> list[Family]:
        """The largest families of errors."""
        return [
            Family(reason=FailureReason(reason), error_type=kind, count=count, latest=aware(at), message=message)
            for reason, kind, count, at, message in self._call("ListFamilies", queue or "", limit)[0]
        ]

    def browse_jobs(self, where: Browse, limit: int = 50, after: Place | None = None) -> BrowsePage:
        """One page of a list."""
        if where.impossible:
            return BrowsePage([], None, False)
        limit = max(1, min(limit, MAX_PAGE))
        [[end_ms, end_id]], rows = self._call(
            "BrowseJobs",
            where.pillar.value,
            where.by_end,
            where.descending,
            where.queue or "",
            -1 if where.status is None else int(where.status),
            where.type_key or "",
            -1 if where.reason is None else int(where.reason),
            where.error_type or "",
            where.tag or "",
            needle(where.text) or "",
            *documents.span(where.ended_from, where.ended_until),
            0 if after is None else after.ended_ms,
            "" if after is None else after.id,
            limit + 1,
            where.look,
        )
        jobs = [views.VIEWS.job(row) for row in rows[:limit]]
        if len(rows) > limit:
            return BrowsePage(jobs, _place(jobs[-1], by_end=where.by_end), False)
        end = end_id.strip()
        return BrowsePage(jobs, Place(end, end_ms) if end else None, bool(end))


def _place(job: JobView, *, by_end: bool) -> Place:
    if not by_end or job.finished_at is None:
        return Place(job.id)
    return Place(job.id, (job.finished_at - _EPOCH) // _MILLISECOND)


def _watched(row: Sequence[Any]) -> Watched:
    job_id, pillar, status, lease, attempts, priority, progress, cancelled, noted = row
    return Watched(
        id=job_id,
        pillar=Pillar(pillar),
        status=JobStatus(status),
        lease=lease,
        attempt_count=attempts,
        priority=priority,
        progress=progress,
        cancel_requested=bool(cancelled),
        noted_at=aware_or_none(noted),
    )


def _series_row(row: Sequence[Any], length: timedelta) -> SeriesRow:
    step, queue, outcome, reason, count, duration, *lag = row
    return SeriesRow(
        start=_EPOCH_2020 + int(step) * length,
        queue=queue,
        outcome=outcome,
        reason=reason,
        count=int(count),
        duration_ms=int(duration),
        lag=tuple(int(part) for part in lag),
    )
