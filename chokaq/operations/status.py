"""The state of everything in one answer, with what is wrong in words."""

import msgspec

from chokaq.config.settings import Settings
from chokaq.lifecycle.circuit import CircuitState
from chokaq.lifecycle.states import Outcome
from chokaq.operations.circuits import CircuitStatus, circuit_notes, list_circuits
from chokaq.operations.databases import Databases
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session
from chokaq.store.records import Bucket, QueueView, WorkerView

WINDOW_MS = 60_000
"""Rates are taken over the last minute."""
LIVE_MS = 60_000
"""A worker silent for no longer counts as live in any case."""
BEATS = 3
"""… and so does one that has missed fewer heartbeats, where we know how often it beats."""


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
    """What somebody decided and may have forgotten: jobs that wait in a paused or deactivated queue, a forced circuit."""
    circuits: list[CircuitStatus] = []
    """Those that are open, being tried or forced."""


def read_status(session: Session, settings: Settings | None = None) -> Status:
    """Read queues, workers and the outcomes of the last minute, and judge them.

    `settings`: ours; they tell how often the workers of a queue beat (up to once an hour).
    """
    rates = _rates(session.list_buckets(None, WINDOW_MS))
    queues = [QueueStatus(queue, rates.get(queue.name, Rates())) for queue in session.list_queues()]
    workers = session.list_workers()
    circuits = [
        circuit for circuit in list_circuits(session) if circuit.order or circuit.state is not CircuitState.CLOSED
    ]
    broken, forced = circuit_notes(circuits)
    found = [*problems(queues, workers, settings), *broken]
    return Status(queues, workers, found, [*notes(queues), *forced], circuits)


def read_statuses(
    databases: Databases, settings: Settings
) -> tuple[dict[str, Status], dict[str, StoreError], list[str]]:
    """The status of each database by name, the errors of those that do not answer, and what is wrong with them together.

    Among that: jobs that stand in another database than their queue lives in (it was moved), where no worker looks for them.
    """
    found, errors = databases.heard(lambda opened: read_status(opened.session, settings))
    told = [f"The database {name} does not answer: {error}" for name, error in errors.items()]
    for name, status in found.items():
        told += [
            f"The queue {entry.queue.name} lives in the database {home}, but {name} holds {_jobs(entry.held)} of it: "
            "no worker with this configuration runs them. docs/databases.md tells how a queue is moved."
            for entry in status.queues
            if entry.held and (home := settings.places.get(entry.queue.name, name)) != name
        ]
    return found, errors, told


def problems(queues: list[QueueStatus], workers: list[WorkerView], settings: Settings | None = None) -> list[str]:
    """What an operator should look at, the queues first."""
    found = []
    live = [worker for worker in workers if is_live(worker, settings)]
    served = {worker.queue.casefold() for worker in live}
    for entry in queues:
        queue = entry.queue
        if entry.held and not queue.live_workers and queue.name.casefold() not in served:
            found.append(
                f"The queue {queue.name} holds {_jobs(entry.held)} but has no live worker anywhere: "
                f"start `chokaq worker` with this queue, or look why it ended."
            )
    for worker in workers:
        if not is_live(worker, settings):
            what = f"queue {worker.queue}" if worker.queue else "maintenance"
            found.append(
                f"The worker {worker.worker_id} ({what}, {worker.host}, pid {worker.pid}) has been silent for "
                f"{worker.heartbeat_age_ms // 1_000} s: its jobs wait for the zombie timeout, after which it is ended."
            )
    if any(served) and "" not in served:
        found.append("Workers run but no maintenance process does: lost jobs are not rescued and old rows stay.")
    return found


def is_live(worker: WorkerView, settings: Settings | None = None) -> bool:
    """True while the worker's last heartbeat is young enough, by its queue's settings where these are ours."""
    beats = [] if settings is None else [queue.heartbeat for queue in settings.queues.values()]
    if settings is not None and worker.queue:
        beats = [settings.queue(worker.queue).heartbeat]
    return worker.heartbeat_age_ms <= max(LIVE_MS, BEATS * max(beats, default=0.0) * 1000)


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
