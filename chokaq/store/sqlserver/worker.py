"""What a child calls: registration, the claim, keep-alive and every settlement."""

from collections.abc import Sequence

from chokaq.lifecycle.states import Answer
from chokaq.store.names import check_name, check_text
from chokaq.store.records import (
    Beat,
    Cancellation,
    Failure,
    Fetch,
    Figures,
    Held,
    Registration,
    Release,
    Retry,
    WorkerInfo,
)
from chokaq.store.sqlserver import documents, views
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.link import Rows
from chokaq.store.views import live_queue

_INT = 2_147_483_647


class WorkerOperations(Calling):
    """See `chokaq.store.protocol.Session`."""

    def register_worker(self, worker: WorkerInfo) -> Registration:
        """Its row, its counter slot, and the queue's row when missing."""
        check_name("worker id", worker.worker_id, limit=26)
        if worker.queue:
            check_name("queue", worker.queue)
        check_text("host", worker.host)
        [[row]] = self._call(
            "RegisterWorker",
            worker.worker_id,
            worker.queue,
            documents.cut(worker.host, 255),
            worker.pid,
            worker.version.encode("ascii", "replace").decode()[:50],
            worker.max_workers,
        )
        return Registration(worker.worker_id, worker.queue, row[0])

    def fetch_jobs(self, worker: Registration, request: int, size: int, fleet_cap: int | None = None) -> Fetch:
        """Claim up to `size` ready jobs; a used request number answers the same rows again."""
        head, told, *rest = self._call(
            "FetchJobs", worker.worker_id, worker.queue, request, max(size, 0), -1 if fleet_cap is None else fleet_cap
        )
        retired, _, now, *live, next_due, chosen, draining, circuit_order = head[0]
        jobs = [views.fetched_job(row, now) for row in rest[0]] if rest else []
        jobs.sort(key=lambda job: (-job.priority, job.due_at, job.id))
        if len(jobs) < chosen:
            # Another fetch was faster over the same rows; more may be waiting behind them.
            next_due = 0
        asked = views.cancellations(told)
        return Fetch(bool(retired), jobs, live_queue(live), asked, next_due, bool(draining), circuit_order)

    def start_jobs(self, worker: Registration, jobs: Sequence[Held]) -> list[Answer]:
        """Fetched → Processing."""
        documents.bounded(jobs)
        return applied(jobs, self._call("StartJobs", worker.worker_id, documents.by_lease(jobs)))

    def keep_alive(
        self, worker: Registration, beats: Sequence[Beat], figures: Figures
    ) -> tuple[list[Answer], list[Cancellation]]:
        """Renew leases; store progress, notes and the worker's figures; tell cancellations."""
        documents.bounded(beats)
        mapped, document = documents.beats(beats)
        rows, told = self._call(
            "KeepAlive",
            worker.worker_id,
            mapped,
            document,
            figures.running,
            figures.buffered,
            min(figures.loop_lag_ms, _INT),
            figures.memory_kb,
            figures.draining,
        )
        return answers(beats, rows), views.cancellations(told)

    def archive_succeeded(self, worker: Registration, jobs: Sequence[Held]) -> list[Answer]:
        """Processing → Archive. A row that a manual repair left there gives way."""
        documents.bounded(jobs)
        return applied(jobs, self._call("ArchiveSucceeded", worker.worker_id, worker.slot, documents.by_lease(jobs)))

    def reschedule_for_retry(self, worker: Registration, retries: Sequence[Retry]) -> list[Answer]:
        """Processing → Pending after a charged failure; Cancelled when asked for, Failed when too old."""
        documents.bounded(retries)
        mapped, document = documents.retries(retries)
        [rows] = self._call("RescheduleForRetry", worker.worker_id, worker.slot, mapped, document)
        return answers(retries, rows)

    def archive_failed(self, worker: Registration, failures: Sequence[Failure]) -> list[Answer]:
        """Fetched or Processing → DLQ."""
        documents.bounded(failures)
        mapped, document = documents.failures(failures)
        [rows] = self._call("ArchiveFailed", worker.worker_id, worker.slot, mapped, document)
        return answers(failures, rows)

    def release_jobs(self, worker: Registration, releases: Sequence[Release]) -> list[Answer]:
        """Fetched or Processing → Pending, uncharged; Cancelled when asked for, Failed when a delay makes it too old."""
        documents.bounded(releases)
        [rows] = self._call("ReleaseJobs", worker.worker_id, worker.slot, documents.releases(releases))
        return answers(releases, rows)


def applied(jobs: Sequence[Held], stale: Sequence[Rows]) -> list[Answer]:
    """One answer per job, in the order of the input: applied, unless a set names it or it has no id that a row could have."""
    named = {(row[0].rstrip(), row[1]) for rows in stale for row in rows}
    return [
        Answer.APPLIED if (job.id, job.lease) not in named and documents.is_id(job.id) else Answer.STALE for job in jobs
    ]


def answers(jobs: Sequence[Held | Beat | Retry | Failure | Release], rows: Rows) -> list[Answer]:
    """One answer per job, in the order of the input; a job the procedure does not mention is stale."""
    found = {(row[0], row[1]): row[2] for row in rows}
    return [Answer(found.get((job.id, job.lease), 0)) for job in jobs]
