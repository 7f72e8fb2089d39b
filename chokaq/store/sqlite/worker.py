"""The operations of a child besides the fetch: register, start, keep alive, and the ways a job leaves it."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from chokaq.lifecycle.states import Answer
from chokaq.store.names import check_name, check_text
from chokaq.store.records import (
    AttemptError,
    Beat,
    Cancellation,
    Failure,
    Figures,
    Held,
    Registration,
    Release,
    Retry,
    WorkerInfo,
)
from chokaq.store.sqlite.connection import Connected, bounded, document
from chokaq.store.sqlite.counters import Tally
from chokaq.store.sqlite.moves import HotJob, Moves
from chokaq.store.sqlite.statements import load

_REGISTER = load("RegisterWorker")
_START_SQL, _KEEP, _SUCCEED = load("StartJobs"), load("KeepAlive"), load("ArchiveSucceeded")
_START, _STARTED = _START_SQL["start"], _START_SQL["shown"]
_WORKER, _BEAT, _NOTE, _CANCELLATIONS = _KEEP["worker"], _KEEP["beat"], _KEEP["note"], _KEEP["cancellations"]
_FORGET_CANCELS = load("Moves")["forget_cancels"]
_RETRY, _FAIL, _RELEASE = load("RescheduleForRetry"), load("ArchiveFailed"), load("ReleaseJobs")


class WorkerOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def register_worker(self, worker: WorkerInfo) -> Registration:
        """Insert the worker's row with a slot of its own, and the queue's row when missing."""
        check_name("worker id", worker.worker_id, limit=26)
        if worker.queue:
            check_name("queue", worker.queue)
        values = {
            "worker": worker.worker_id,
            "queue": worker.queue,
            "host": check_text("host", worker.host),
            "pid": worker.pid,
            "version": worker.version,
            "max_workers": worker.max_workers,
        }
        with self._writing() as (connection, now):
            if worker.queue:
                connection.execute(_REGISTER["queue"], values)
            row = connection.execute(_REGISTER["known"], values).fetchone()
            if row is None:
                row = connection.execute(_REGISTER["insert"], values | {"now": now}).fetchone()
            return Registration(worker.worker_id, worker.queue, row[0])

    def start_jobs(self, worker: Registration, jobs: Sequence[Held]) -> list[Answer]:
        """Fetched → Processing."""
        bounded(jobs)
        if not jobs:
            return []
        given = _pairs(jobs)
        with self._writing() as (connection, now):
            if connection.execute(_START, {"jobs": given, "now": now}).rowcount == len(jobs):
                return [Answer.APPLIED] * len(jobs)
            done = set(connection.execute(_STARTED, {"jobs": given}).fetchall())
        return _answers(jobs, done)

    def keep_alive(
        self, worker: Registration, beats: Sequence[Beat], figures: Figures
    ) -> tuple[list[Answer], list[Cancellation]]:
        """Renew leases; store progress, notes and the worker's figures; tell cancellations."""
        bounded(beats)
        given = document([(beat.id, beat.lease, beat.progress) for beat in beats])
        notes = [(beat, check_text("note", beat.note)) for beat in beats if beat.note is not None]
        values = {
            "worker": worker.worker_id,
            "running": figures.running,
            "buffered": figures.buffered,
            "loop_lag_ms": figures.loop_lag_ms,
            "memory_kb": figures.memory_kb,
            "draining": figures.draining,
        }
        with self._writing() as (connection, now):
            connection.execute(_WORKER, values | {"now": now})
            renewed: set[tuple[str, int]] = set()
            if beats:
                renewed.update(connection.execute(_BEAT, {"beats": given, "now": now}).fetchall())
            asked = connection.execute(_CANCELLATIONS, values).fetchall()
            connection.executemany(
                _NOTE, [(beat.id, note, now) for beat, note in notes if (beat.id, beat.lease) in renewed]
            )
        return _answers(beats, renewed), [Cancellation(*row) for row in asked]

    def archive_succeeded(self, worker: Registration, jobs: Sequence[Held]) -> list[Answer]:
        """Processing → Archive, counted. A row that a manual repair left there gives way."""
        bounded(jobs)
        if not jobs:
            return []
        given = _pairs(jobs)
        moved, tally = 0, Tally()
        with self._writing() as (connection, now):
            matched = connection.execute(_SUCCEED["match"], {"jobs": given, "now": now}).fetchall()
            for queue, rows, durations, lags in matched:
                moving = {"rows": rows, "now": now}
                moved += connection.execute(_SUCCEED["move"], moving).rowcount
                connection.execute(_SUCCEED["leave_hot"], moving)
                tally.successes(queue, orjson.loads(durations), orjson.loads(lags))
            if matched:
                connection.execute(_FORGET_CANCELS, {"jobs": given})
                tally.write(connection, worker.slot, now)
            if moved == len(jobs):
                return [Answer.APPLIED] * len(jobs)
            done = set(connection.execute(_SUCCEED["shown"], {"jobs": given}).fetchall())
        return _answers(jobs, done)

    def reschedule_for_retry(self, worker: Registration, retries: Sequence[Retry]) -> list[Answer]:
        """Processing → Pending after a charged failure; Cancelled when asked for, Failed when too old."""
        bounded(retries)
        if not retries:
            return []
        for retry in retries:
            _check_error(retry.error)
        answers: dict[tuple[str, int], Answer] = {}
        with self._writing() as (connection, now):
            given, moves = _pairs(retries), Moves()
            matched = _matched(connection.execute(_RETRY["match"], {"jobs": given}))
            for retry in retries:
                job = matched.pop((retry.id, retry.lease), None)
                if job is None:
                    continue
                due = now + retry.delay_ms
                moves.attempt(job, now, retry.reason, retry.error)
                if job.cancel_requested is not None:
                    moves.cancel(job, retry.error)
                    answer = Answer.CANCELLED
                elif job.too_old(retry.max_age_ms, due):
                    moves.expire(job, retry.error)
                    answer = Answer.EXPIRED
                else:
                    moves.retry(job, due, retry.reason)
                    answer = Answer.APPLIED
                answers[retry.id, retry.lease] = answer
            moves.apply(connection, worker.slot, now)
            if len(answers) < len(retries):
                for job_id, lease, shown in connection.execute(_RETRY["shown"], {"jobs": given}).fetchall():
                    answers.setdefault((job_id, lease), Answer(shown))
        return [answers.get((retry.id, retry.lease), Answer.STALE) for retry in retries]

    def archive_failed(self, worker: Registration, failures: Sequence[Failure]) -> list[Answer]:
        """Fetched or Processing → DLQ, counted."""
        bounded(failures)
        if not failures:
            return []
        for failure in failures:
            _check_error(failure.error)
        answers: dict[tuple[str, int], Answer] = {}
        with self._writing() as (connection, now):
            given, moves = _pairs(failures), Moves()
            matched = _matched(connection.execute(_FAIL["match"], {"jobs": given}))
            for failure in failures:
                job = matched.pop((failure.id, failure.lease), None)
                if job is None:
                    continue
                if failure.error is not None:
                    moves.attempt(job, now, failure.reason, failure.error)
                moves.stop(job, failure.status, failure.reason, failure.error)
                answers[failure.id, failure.lease] = Answer.APPLIED
            moves.apply(connection, worker.slot, now)
            if len(answers) < len(failures):
                shown = set(connection.execute(_FAIL["shown"], {"jobs": given}).fetchall())
                for failure in failures:
                    if (failure.id, failure.lease, failure.status, failure.reason) in shown:
                        answers[failure.id, failure.lease] = Answer.APPLIED
        return [answers.get((failure.id, failure.lease), Answer.STALE) for failure in failures]

    def release_jobs(self, worker: Registration, releases: Sequence[Release]) -> list[Answer]:
        """Fetched or Processing → Pending, uncharged; Cancelled when asked for, Failed when a delay makes it too old."""
        bounded(releases)
        if not releases:
            return []
        answers: dict[tuple[str, int], Answer] = {}
        with self._writing() as (connection, now):
            given, moves = _pairs(releases), Moves()
            matched = _matched(connection.execute(_RELEASE["match"], {"jobs": given}))
            for release in releases:
                job = matched.pop((release.id, release.lease), None)
                if job is None:
                    continue
                due = None if release.delay_ms is None else now + release.delay_ms
                if job.cancel_requested is not None:
                    moves.cancel(job)
                    answer = Answer.CANCELLED
                elif due is not None and job.too_old(release.max_age_ms, due):
                    moves.expire(job)
                    answer = Answer.EXPIRED
                else:
                    moves.hand_back(job, due)
                    answer = Answer.APPLIED
                answers[release.id, release.lease] = answer
            moves.apply(connection, worker.slot, now)
            if len(answers) < len(releases):
                for job_id, lease, shown in connection.execute(_RELEASE["shown"], {"jobs": given}).fetchall():
                    answers.setdefault((job_id, lease), Answer(shown))
        return [answers.get((release.id, release.lease), Answer.STALE) for release in releases]


def _pairs(jobs: Iterable[Held | Retry | Failure | Release]) -> str:
    """The document of (id, lease), each pair once."""
    return document(list({(job.id, job.lease): None for job in jobs}))


def _answers(jobs: Sequence[Held | Beat], done: set[tuple[str, int]]) -> list[Answer]:
    if len(done) == len(jobs):
        return [Answer.APPLIED] * len(jobs)
    return [Answer.APPLIED if (job.id, job.lease) in done else Answer.STALE for job in jobs]


def _matched(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[str, int], HotJob]:
    return {(job.id, job.lease): job for job in map(HotJob._make, rows)}


def _check_error(error: AttemptError | None) -> None:
    if error is not None:
        check_text("error type", error.type)
        check_text("error message", error.message)
        check_text("error trace", error.trace)
