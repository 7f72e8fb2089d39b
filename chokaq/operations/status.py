"""The state of everything in one answer, with what is wrong in words."""

import msgspec

from chokaq.lifecycle.states import Outcome
from chokaq.store.protocol import Session
from chokaq.store.records import Bucket, QueueView, WorkerView

WINDOW_MS = 60_000
"""Rates are taken over the last minute."""
LOST_WORKER_MS = 60_000
"""A worker silent for longer does not count as live."""


class Rates(msgspec.Struct, frozen=True):
    """Outcomes of one queue in the last minute."""

    succeeded: int = 0
    failed: int = 0
    retried: int = 0


class QueueStatus(msgspec.Struct, frozen=True):
    """A queue with its recent outcomes."""

    queue: QueueView
    last_minute: Rates

    @property
    def held(self) -> int:
        """Jobs that stand in Hot."""
        queue = self.queue
        return queue.pending + queue.scheduled + queue.fetched + queue.processing


class Status(msgspec.Struct, frozen=True):
    """What `chokaq status` shows."""

    queues: list[QueueStatus]
    workers: list[WorkerView]
    """Not ended; maintenance processes have an empty queue."""
    problems: list[str]
    """One sentence each, with what to do; empty: all is well."""
    notes: list[str]
    """What somebody decided and may have forgotten: jobs that wait in a paused or deactivated queue."""


def read_status(session: Session) -> Status:
    """Read queues, workers and the outcomes of the last minute, and judge them."""
    rates = _rates(session.list_buckets(None, WINDOW_MS))
    queues = [QueueStatus(queue, rates.get(queue.name, Rates())) for queue in session.list_queues()]
    workers = session.list_workers()
    return Status(queues, workers, problems(queues, workers), notes(queues))


def problems(queues: list[QueueStatus], workers: list[WorkerView]) -> list[str]:
    """What an operator should look at, the queues first."""
    found = []
    for entry in queues:
        queue = entry.queue
        if entry.held and not queue.live_workers:
            found.append(
                f"The queue {queue.name} holds {_jobs(entry.held)} but has no live worker anywhere: "
                f"start `chokaq worker` with this queue, or look why it ended."
            )
    for worker in workers:
        if worker.heartbeat_age_ms > LOST_WORKER_MS:
            what = f"queue {worker.queue}" if worker.queue else "maintenance"
            found.append(
                f"The worker {worker.worker_id} ({what}, {worker.host}, pid {worker.pid}) has been silent for "
                f"{worker.heartbeat_age_ms // 1_000} s: its jobs wait for the zombie timeout."
            )
    live = [worker for worker in workers if worker.heartbeat_age_ms <= LOST_WORKER_MS]
    if any(worker.queue for worker in live) and not any(not worker.queue for worker in live):
        found.append("Workers run but no maintenance process does: lost jobs are not rescued and old rows stay.")
    return found


def notes(queues: list[QueueStatus]) -> list[str]:
    """Jobs that wait because an operator said so."""
    found = []
    for entry in queues:
        name, live = entry.queue.name, entry.queue.live
        if entry.held and not live.active:
            found.append(
                f"The queue {name} holds {_jobs(entry.held)} and is deactivated: `chokaq queues activate {name}`."
            )
        elif entry.held and live.paused:
            found.append(f"The queue {name} holds {_jobs(entry.held)} and is paused: `chokaq queues resume {name}`.")
    return found


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


def _rates(buckets: list[Bucket]) -> dict[str, Rates]:
    counts: dict[str, dict[int, int]] = {}
    for bucket in buckets:
        by_outcome = counts.setdefault(bucket.queue, {})
        by_outcome[bucket.outcome] = by_outcome.get(bucket.outcome, 0) + bucket.count
    return {
        queue: Rates(
            by_outcome.get(Outcome.SUCCEEDED, 0), by_outcome.get(Outcome.FAILED, 0), by_outcome.get(Outcome.RETRIED, 0)
        )
        for queue, by_outcome in counts.items()
    }
