"""The operators' repairs: ResurrectJobs, DropJobs, PurgeJobs, EditJob, DrainWorker.

Each is one write transaction, which excludes every other writer: what is read in it still stands when it is changed.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType

from chokaq.lifecycle.states import JobStatus
from chokaq.store.hashing import payload_hash
from chokaq.store.names import check_text
from chokaq.store.repairs import (
    ACCEPTED,
    KEY_CONFLICT,
    UNKNOWN,
    WRONG_STATE,
    Edits,
    RepairAnswer,
    check_actor,
    check_changes,
    check_edits,
)
from chokaq.store.sqlite.connection import Connected, bounded, document
from chokaq.store.sqlite.statements import load

_SHARED = load("Repairs")
_RESURRECT, _DROP, _PURGE = load("ResurrectJobs"), load("DropJobs"), load("PurgeJobs")
_EDIT, _DRAIN = load("EditJob"), load("DrainWorker")


class _Facts(NamedTuple):
    """What the audit log keeps of a job, in the column order of the statements."""

    id: str
    status: int
    queue: str
    type_key: str
    priority: int
    tags: str | None
    key: str | None
    attempts: int
    crashes: int
    reason: int | None
    payload_hash: str
    payload_size: int

    def edited(self, edits: Edits) -> "_Facts":
        """With the edits laid over."""
        changed: dict[str, Any] = {}
        if not isinstance(edits.payload, UnsetType):
            changed |= {"payload_hash": payload_hash(edits.payload), "payload_size": len(edits.payload)}
        if not isinstance(edits.tags, UnsetType):
            changed["tags"] = edits.tags
        if not isinstance(edits.priority, UnsetType):
            changed["priority"] = edits.priority
        return self._replace(**changed)

    def text(self) -> str:
        """As AuditLog holds it: the payload by its hash and size only."""
        return _json(
            {
                "status": JobStatus(self.status).label,
                "queue": self.queue,
                "type": self.type_key,
                "priority": self.priority,
                "tags": self.tags,
                "idempotency_key": self.key,
                "attempts": self.attempts,
                "crashes": self.crashes,
                "failure_reason": self.reason,
                "payload_hash": self.payload_hash,
                "payload_size": self.payload_size,
            }
        )


class _Order:
    """One call of an operator on some jobs, inside its transaction: answers and audit rows collect here."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: int,
        action: str,
        targets: Sequence[str],
        who: tuple[str, str | None, str | None],
    ) -> None:
        """`who`: actor, reason, request. What an earlier try of the same request did is accepted from the start."""
        self._connection = connection
        self._now = now
        self._action = action
        self._targets = targets
        self._actor, self._reason, self._request = who
        self._audit: list[tuple[Any, ...]] = []
        self.results: dict[str, str] = {}
        self.holders: dict[str, str] = {}
        self.ids = {"ids": document(list(targets))}
        if self._request is not None:
            key = {"request": self._request, "action": action}
            rows = connection.execute(_SHARED["done_before"], self.ids | key).fetchall()
            self.results = {target: ACCEPTED for (target,) in rows}

    def accept(self, target: str, before: str, after: str) -> None:
        """It is done, and goes into the audit log."""
        self.results[target] = ACCEPTED
        self._audit.append((self._now, self._actor, self._action, target, self._reason, before, after, self._request))

    def refuse(self, job_id: str, holder: str) -> None:
        """Another live job holds its key."""
        self.results[job_id], self.holders[job_id] = KEY_CONFLICT, holder

    def answers(self) -> list[RepairAnswer]:
        """Write the audit rows; one answer per job, with the state it stands in now."""
        self._connection.executemany(_SHARED["audit"], self._audit)
        stands = {job_id: JobStatus(status) for job_id, status in self._connection.execute(_SHARED["stands"], self.ids)}
        return [
            RepairAnswer(
                job_id,
                self.results.get(job_id, WRONG_STATE if job_id in stands else UNKNOWN),
                stands.get(job_id),
                self.holders.get(job_id),
            )
            for job_id in self._targets
        ]


class RepairOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def resurrect_jobs(
        self,
        job_ids: Sequence[str],
        actor: str,
        reason: str | None = None,
        *,
        edits: Edits | None = None,
        without_key: bool = False,
        request: str | None = None,
    ) -> list[RepairAnswer]:
        """DLQ → Pending, a new life under the lease number it had. Audited per job."""
        bounded(job_ids)
        who, changes = _checked(actor, reason, request), check_edits(edits)
        values = _values(changes)
        with self._writing() as (connection, now):
            order = _Order(connection, now, "resurrect", job_ids, who)
            stopped = [
                job
                for job in map(_Facts._make, connection.execute(_RESURRECT["stopped"], order.ids))
                if job.id not in order.results
            ]
            if not without_key:
                stopped = _free_of_conflict(connection, order, stopped)
            for job in stopped:
                later = job.edited(changes)._replace(status=JobStatus.PENDING, attempts=0, crashes=0, reason=None)
                order.accept(job.id, job.text(), (later._replace(key=None) if without_key else later).text())
            moved = _ids(job.id for job in stopped)
            connection.execute(_RESURRECT["move"], values | moved | {"now": now, "without_key": without_key})
            connection.execute(_RESURRECT["leave_dlq"], moved)
            if without_key:
                connection.execute(_RESURRECT["give_up_keys"], moved)
            waiting: dict[str, str] = dict(connection.execute(_RESURRECT["waiting"], order.ids))
            return [
                msgspec.structs.replace(answer, queue=waiting.get(answer.id)) if answer.result == ACCEPTED else answer
                for answer in order.answers()
            ]

    def drop_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        """DLQ → Dropped, for good. Audited per job."""
        bounded(job_ids)
        who = _checked(actor, reason, request)
        with self._writing() as (connection, now):
            order = _Order(connection, now, "drop", job_ids, who)
            dropped = []
            for job_id, status in connection.execute(_DROP["stopped"], order.ids).fetchall():
                if job_id not in order.results:
                    dropped.append(job_id)
                    order.accept(job_id, _state(JobStatus(status)), _state(JobStatus.DROPPED))
            connection.execute(_DROP["drop"], _ids(dropped) | {"actor": actor})
            return order.answers()

    def purge_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        """Delete jobs of Archive or DLQ with all that hangs on them. Audited per job."""
        bounded(job_ids)
        who = _checked(actor, reason, request)
        with self._writing() as (connection, now):
            order = _Order(connection, now, "purge", job_ids, who)
            gone = []
            for job in map(_Facts._make, connection.execute(_PURGE["ended"], order.ids).fetchall()):
                if job.id not in order.results:
                    gone.append(job.id)
                    order.accept(job.id, job.text(), _json({"purged": True}))
            for statement in ("archive", "dlq", "keys", "notes", "attempts"):
                connection.execute(_PURGE[statement], _ids(gone))
            return order.answers()

    def edit_job(
        self, job_id: str, edits: Edits, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        """Change a Pending or stopped job. Audited with before and after."""
        who, values = _checked(actor, reason, request), _values(check_changes(edits))
        with self._writing() as (connection, now):
            order = _Order(connection, now, "edit", [job_id], who)
            row = connection.execute(_EDIT["editable"], {"id": job_id}).fetchone()
            if row is not None and job_id not in order.results:
                is_hot, *columns = row
                job = _Facts._make(columns)
                order.accept(job_id, job.text(), job.edited(edits).text())
                connection.execute(_EDIT["hot" if is_hot else "dlq"], values | {"id": job_id, "actor": actor})
            [answer] = order.answers()
            return answer

    def drain_worker(
        self, worker_id: str, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        """Ask a worker to end once its replacement is there. Audited the first time."""
        who = _checked(actor, reason, request)
        with self._writing() as (connection, now):
            order = _Order(connection, now, "drain", [worker_id], who)
            row = connection.execute(_DRAIN["worker"], {"worker": worker_id}).fetchone()
            if row is None or worker_id in order.results:
                return RepairAnswer(worker_id, order.results.get(worker_id, UNKNOWN))
            queue, ended, asked = row
            if ended is not None or not queue:
                return RepairAnswer(worker_id, WRONG_STATE)
            if asked is None:
                connection.execute(_DRAIN["drain"], {"worker": worker_id, "now": now})
                order.accept(worker_id, _json({"draining": False}), _json({"draining": True}))
                order.answers()
            return RepairAnswer(worker_id, ACCEPTED)


def _free_of_conflict(connection: sqlite3.Connection, order: _Order, jobs: Iterable[_Facts]) -> list[_Facts]:
    """The jobs whose key no other live job holds; of several with one key the first by id, as it will hold it."""
    jobs = list(jobs)
    keys = {"keys": document(sorted({job.key for job in jobs if job.key is not None}))}
    holders: dict[str, str] = dict(connection.execute(_RESURRECT["holders"], keys))
    free = []
    for job in jobs:
        if job.key is None:
            free.append(job)
        elif job.key in holders:
            order.refuse(job.id, holders[job.key])
        else:
            holders[job.key] = job.id
            free.append(job)
    return free


def _checked(actor: str, reason: str | None, request: str | None) -> tuple[str, str | None, str | None]:
    check_text("actor", check_actor(actor))
    check_text("reason", reason)
    return actor, reason, request


def _values(edits: Edits) -> dict[str, Any]:
    """The parameters of an edit."""
    payload = None if isinstance(edits.payload, UnsetType) else edits.payload
    retag = not isinstance(edits.tags, UnsetType)
    return {
        "payload": payload,
        "payload_hash": None if payload is None else payload_hash(payload),
        "retag": retag,
        "tags": check_text("tags", None if isinstance(edits.tags, UnsetType) else edits.tags),
        "priority": None if isinstance(edits.priority, UnsetType) else edits.priority,
    }


def _ids(job_ids: Iterable[str]) -> dict[str, Any]:
    return {"ids": document(list(job_ids))}


def _state(status: JobStatus) -> str:
    return _json({"status": status.label})


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
