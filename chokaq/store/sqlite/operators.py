"""The operators' operations: CancelJobs, SetQueue."""

from collections.abc import Sequence
from typing import Any

import msgspec

from chokaq.lifecycle.states import JobStatus
from chokaq.store.errors import StoreUnavailable
from chokaq.store.names import check_name, check_text
from chokaq.store.records import CancelAnswer, LiveQueue, QueueChange, QueueView
from chokaq.store.sqlite.connection import bounded, document
from chokaq.store.sqlite.counters import OPERATOR_SLOT
from chokaq.store.sqlite.enqueue import owner_login
from chokaq.store.sqlite.moves import HotJob, Moves
from chokaq.store.sqlite.reads import ReadOperations
from chokaq.store.sqlite.statements import load
from chokaq.store.views import live_queue

_CANCEL, _SET = load("CancelJobs"), load("SetQueue")


class OperatorOperations(ReadOperations):
    """See `chokaq.store.protocol.Session`."""

    def cancel_jobs(
        self,
        job_ids: Sequence[str],
        actor: str,
        reason: str | None = None,
        *,
        own_only: bool = False,
        request: str | None = None,
    ) -> list[CancelAnswer]:
        """Pending and Fetched → DLQ at once; Processing: its holder is told. Audited per job changed."""
        bounded(job_ids)
        check_text("actor", actor)
        check_text("reason", reason)
        if not job_ids:
            return []
        ids = {"ids": document(list(job_ids))}
        results: dict[str, str] = {}
        with self._writing() as (connection, now):
            moves, requests, audit = Moves(), [], []
            for *columns, owner in connection.execute(_CANCEL["hot"], ids).fetchall():
                job = HotJob._make(columns)
                if own_only and owner != owner_login():
                    continue
                before = JobStatus(job.status)
                if before == JobStatus.PROCESSING:
                    results[job.id] = "requested"
                    if job.cancel_requested is not None:
                        continue
                    requests.append((job.worker_id, job.id, job.lease, actor, reason, now))
                    after = _state(before, cancel_requested=True)
                else:
                    results[job.id] = "cancelled"
                    moves.cancel(job, modified_by=actor)
                    after = _state(JobStatus.CANCELLED)
                audit.append((now, actor, job.id, reason, _state(before), after, request))
            if request is not None:
                for (job_id,) in connection.execute(_CANCEL["done_before"], ids | {"request": request}).fetchall():
                    results.setdefault(job_id, "cancelled")
            for job_id, owner in connection.execute(_CANCEL["ended"], ids).fetchall():
                if not own_only or owner == owner_login():
                    results.setdefault(job_id, "final")
            if requests:
                connection.execute(_CANCEL["mark"], {"ids": document([row[1] for row in requests]), "now": now})
                connection.executemany(_CANCEL["request"], requests)
            moves.apply(connection, OPERATOR_SLOT, now)
            connection.executemany(_CANCEL["audit"], audit)
        return [CancelAnswer(job_id, results.get(job_id, "unknown")) for job_id in job_ids]

    def set_queue(self, queue: str, change: QueueChange, actor: str, reason: str | None = None) -> QueueView:
        """Write overrides, audited with before and after."""
        check_name("queue", queue)
        check_text("actor", actor)
        check_text("reason", reason)
        wanted = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not msgspec.UNSET}
        with self._writing() as (connection, now):
            row = connection.execute(_SET["current"], {"queue": queue}).fetchone()
            before = LiveQueue() if row is None else live_queue(row)
            after = msgspec.structs.replace(before, **wanted)
            key = {"queue": queue, "actor": actor, "now": now}
            connection.execute(_SET["write"], msgspec.structs.asdict(after) | key)
            connection.execute(
                _SET["audit"],
                key | {"reason": reason, "before": None if row is None else _text(before), "after": _text(after)},
            )
        for view in self.list_queues():
            if view.name == queue:
                return view
        raise StoreUnavailable(f"queue {queue} was changed, but is gone again")


def _state(status: JobStatus, **more: Any) -> str:
    return _text({"status": status.label} | more)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
