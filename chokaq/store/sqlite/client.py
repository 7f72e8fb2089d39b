"""The client's operations: EnqueueJobs, GetJob, GetStatuses."""

from collections.abc import Sequence

from chokaq.lifecycle.states import JobStatus
from chokaq.store.records import Enqueued, JobView, NewJob
from chokaq.store.sqlite import enqueue
from chokaq.store.sqlite.connection import Connected, bounded, document
from chokaq.store.sqlite.statements import load
from chokaq.store.sqlite.views import VIEWS

_GET = load("GetJob")["get"]
_STATUSES = load("GetStatuses")["get"]


class ClientOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def enqueue_jobs(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Accept jobs durably, in one transaction."""
        enqueue.validate(jobs)
        if not jobs:
            return []
        with self._writing() as (connection, now):
            return enqueue.enqueue(connection, jobs, now)

    def get_job(self, job_id: str) -> JobView | None:
        """The job with payload, headers and note, from whichever pillar it stands in."""
        rows = self._select(_GET, {"id": job_id})
        if not rows:
            return None
        return VIEWS.job(rows[0])

    def get_statuses(self, job_ids: Sequence[str]) -> list[JobStatus | None]:
        """The state of each job; None for unknown ids."""
        bounded(job_ids)
        if not job_ids:
            return []
        found = dict(self._select(_STATUSES, {"ids": document(list(job_ids))}))
        return [JobStatus(found[job_id]) if job_id in found else None for job_id in job_ids]
