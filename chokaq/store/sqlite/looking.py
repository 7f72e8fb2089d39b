"""What The Deck asks: ReadChanges, ReadSeries, BrowseJobs, ListFamilies; and SignOut."""

from collections.abc import Sequence
from heapq import merge
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
from chokaq.store.repairs import needle, since_1970
from chokaq.store.sqlite.clock import from_ms, from_ms_or_none, now_ms
from chokaq.store.sqlite.connection import Connected, document
from chokaq.store.sqlite.reads import MAX_PAGE, containing
from chokaq.store.sqlite.statements import load
from chokaq.store.sqlite.views import VIEWS

EPOCH_2020_MS = 1_577_836_800_000
WINDOW_MS = 10_000
_FIRST_MS, _LAST_MS = -1, 1 << 60

_CHANGES, _SERIES, _FAMILIES = load("ReadChanges"), load("ReadSeries")["rows"], load("ListFamilies")["list"]
_SIGN_OUT = load("SignOut")["write"]
_DOWN = load("BrowseJobs")
_UP = {
    name: sql.replace(" DESC", "").replace("Id < :after", "Id > :after").replace(") < (:after_ms", ") > (:after_ms")
    for name, sql in _DOWN.items()
}

Key = tuple[int, str]
"""End (0 in the order of ids) and id of a job."""


class LookingOperations(Connected):
    """See `chokaq.store.looking.LookingSession`."""

    def read_changes(self, watched: Sequence[str] = (), signed_out_since: int | None = None) -> Changes:
        """Marks of everything that can change, and the jobs looked at."""
        now = now_ms()
        [(audit, order, told, failures, changed, live, draining, beat)] = self._select(_CHANGES["marks"])
        ids = list(dict.fromkeys(watched))[:MAX_WATCHED]
        return Changes(
            now=from_ms(now),
            audit=audit,
            order=order,
            circuits=(told, failures, from_ms_or_none(changed)),
            workers=(live, draining, from_ms_or_none(beat)),
            newest=[(job_id, queue) for job_id, queue in self._select(_CHANGES["newest"])],
            buckets=[BucketMark(*row) for row in self._select(_CHANGES["buckets"], {"since": now - WINDOW_MS})],
            leases=dict(self._select(_CHANGES["leases"])),
            watched=[_watched(row) for row in self._select(_CHANGES["watched"], {"ids": document(ids)})] if ids else [],
            signed_out={} if signed_out_since is None else self._signed_out(now, signed_out_since),
        )

    def sign_out(self, session: str, remaining_ms: int) -> None:
        """End a session of The Deck for all of its processes."""
        check_session(session)
        with self._writing() as (connection, now):
            until = now + min(remaining_ms, LONGEST_SESSION_MS)
            connection.execute(_SIGN_OUT, {"session": session, "now": now, "until": until})

    def read_series(self, queue: str | None, step_seconds: int, steps: int) -> Series:
        """Outcome counters in steps, summed over slots."""
        now, length = now_ms(), step_seconds * 1_000
        current = (now - EPOCH_2020_MS) // length
        since = EPOCH_2020_MS + (current - steps + 1) * length
        rows = self._select(_SERIES, {"queue": queue, "step": step_seconds, "since": since})
        return Series(
            from_ms(now), from_ms(EPOCH_2020_MS + current * length), [_series_row(row, length) for row in rows]
        )

    def list_families(self, queue: str | None = None, limit: int = 5) -> list[Family]:
        """The largest families of errors."""
        return [
            Family(reason=FailureReason(reason), error_type=kind, count=count, latest=from_ms(at), message=message)
            for reason, kind, count, at, message in self._select(_FAMILIES, {"queue": queue, "limit": limit})
        ]

    def browse_jobs(self, where: Browse, limit: int = 50, after: Place | None = None) -> BrowsePage:
        """One page of a list."""
        if where.impossible:
            return BrowsePage([], None, False)
        limit = max(1, min(limit, MAX_PAGE))
        name = _statement(where)
        statements = _DOWN if where.descending else _UP
        values = _values(where, limit, after)
        queues = [where.queue]
        if where.by_end and where.queue is None:
            queues = [row[0] for row in self._select(_DOWN[f"{where.pillar.value}_queues"])]
        found: list[list[Key]] = []
        ends: list[Key] = []
        for queue in queues:
            values["queue"] = queue
            keys = [(ended, job_id) for job_id, ended in self._select(statements[name], values)]
            found.append(keys)
            if len(keys) <= limit:
                ends += [(ended, job_id) for job_id, ended in self._select(statements[f"{name}_end"], values)]
        ordered = list(merge(*found, reverse=where.descending))
        end = (max(ends) if where.descending else min(ends)) if ends else None
        if end is not None:
            ordered = [key for key in ordered if (key >= end if where.descending else key <= end)]
        jobs = self._jobs(where, [job_id for _, job_id in ordered[:limit]])
        if len(ordered) > limit:
            return BrowsePage(jobs, _place(ordered[limit - 1]), False)
        return BrowsePage(jobs, None if end is None else _place(end), end is not None)

    def _signed_out(self, now: int, since: int) -> dict[str, int]:
        return dict(self._select(_CHANGES["signed_out"], {"now": now, "since": now - since * 1_000}))

    def _jobs(self, where: Browse, ids: list[str]) -> list[JobView]:
        rows = self._select(_DOWN[f"{where.pillar.value}_rows"], {"ids": document(ids)})
        found = {job.id: job for job in map(VIEWS.job, rows)}
        return [found[job_id] for job_id in ids if job_id in found]


def _statement(where: Browse) -> str:
    if where.pillar is Pillar.HOT:
        return "leased" if where.leased else "hot"
    return f"{where.pillar.value}_by_end" if where.by_end else where.pillar.value


def _values(where: Browse, limit: int, after: Place | None) -> dict[str, Any]:
    first = ("~", _LAST_MS) if where.descending else ("", _FIRST_MS)
    text = needle(where.text)
    return {
        "status": where.status,
        "type": where.type_key,
        "reason": where.reason,
        "error_type": where.error_type,
        "tag": containing(where.tag),
        "text": text,
        "ended_from": since_1970("ended_from", where.ended_from),
        "ended_until": since_1970("ended_until", where.ended_until),
        "after": first[0] if after is None else after.id,
        "after_ms": first[1] if after is None else after.ended_ms,
        "look": where.look,
        "limit": limit + 1,
    }


def _place(key: Key) -> Place:
    return Place(key[1], key[0])


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
        noted_at=from_ms_or_none(noted),
    )


def _series_row(row: Sequence[Any], length: int) -> SeriesRow:
    step, queue, outcome, reason, count, duration, *lag = row
    return SeriesRow(
        start=from_ms(EPOCH_2020_MS + step * length),
        queue=queue,
        outcome=outcome,
        reason=reason,
        count=count,
        duration_ms=duration,
        lag=tuple(lag),
    )
