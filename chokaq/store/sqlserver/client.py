"""What an application calls: enqueue and look up."""

from collections.abc import Callable, Sequence
from typing import Any

from chokaq.lifecycle.states import JobStatus
from chokaq.store.batching import enqueue_folded
from chokaq.store.hashing import payload_hash
from chokaq.store.records import Enqueued, JobView, NewJob
from chokaq.store.sqlserver import documents, views
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.link import Rows

Run = Callable[[documents.Enqueue], Rows]
"""Runs EnqueueJobs or EnqueueKeyedJobs; its rows."""


class ClientOperations(Calling):
    """See `chokaq.store.protocol.Session`."""

    def enqueue_jobs(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Accept jobs durably, in one transaction of its own."""
        return enqueue(self._enqueue, jobs)

    def get_job(self, job_id: str) -> JobView | None:
        """The job from whichever pillar it stands in."""
        if not documents.is_id(job_id):
            return None
        for rows in self._call("GetJob", job_id):
            for row in rows:
                return views.VIEWS.job(row)
        return None

    def get_statuses(self, job_ids: Sequence[str]) -> list[JobStatus | None]:
        """The state of each job; None for unknown ids."""
        documents.bounded(job_ids)
        [rows] = self._call("GetStatuses", documents.ids(job_ids))
        found = {row[0]: JobStatus(row[1]) for row in rows}
        return [found.get(job_id) for job_id in job_ids]

    def _enqueue(self, call: documents.Enqueue) -> Rows:
        return [row for rows in self._call(call.procedure, *call.parameters, False) for row in rows]


def enqueue(run: Run, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """One answer per job, in order. Equal ids and equal keys of one call are sent once, and answer for all."""
    documents.validate(jobs)
    return enqueue_folded(lambda given: _by_id(run, given), jobs)


def _by_id(run: Run, jobs: Sequence[NewJob]) -> list[Enqueued]:
    unique = {job.id: job for job in reversed(jobs)}
    rows = {row[0].rstrip(): row for row in run(documents.enqueue(list(unique.values())))}
    return [_enqueued(job, rows.get(job.id)) for job in jobs]


def _enqueued(job: NewJob, row: Sequence[Any] | None) -> Enqueued:
    """`row`: the procedure's; None: accepted now."""
    if row is None:
        return Enqueued(job.id, True, JobStatus.PENDING)
    _, holder, created, status, digest = row
    return Enqueued(holder.rstrip(), bool(created), JobStatus(status), digest != payload_hash(job.payload))
