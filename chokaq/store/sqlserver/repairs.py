"""The operators' repairs: resurrect, drop, purge, edit, drain, and the preview of a DLQ filter."""

from collections.abc import Sequence

from msgspec import UnsetType

from chokaq.lifecycle.states import JobStatus
from chokaq.store.hashing import payload_hash
from chokaq.store.repairs import (
    MAX_PREVIEW,
    RESULTS,
    UNKNOWN,
    DlqFilter,
    DlqPreview,
    Edits,
    KeyHolder,
    RepairAnswer,
    check_actor,
    check_changes,
    check_edits,
    needle,
)
from chokaq.store.sqlserver import documents
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.link import Rows

KEY_LIMIT = 255
"""UTF-16 code units of an idempotency key."""
_PAYLOAD, _TAGS, _PRIORITY, _CLEAR_TAGS = 1, 2, 4, 8


class RepairOperations(Calling):
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
        documents.bounded(job_ids)
        who, changes = _checked(actor, reason, request), _changes(check_edits(edits))
        [rows] = self._call("ResurrectJobs", documents.ids(job_ids), *changes, without_key, *who)
        return _answers(job_ids, rows)

    def drop_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        """DLQ → Dropped, for good. Audited per job."""
        documents.bounded(job_ids)
        [rows] = self._call("DropJobs", documents.ids(job_ids), *_checked(actor, reason, request))
        return _answers(job_ids, rows)

    def purge_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        """Delete jobs of Archive or DLQ with all that hangs on them. Audited per job."""
        documents.bounded(job_ids)
        [rows] = self._call("PurgeJobs", documents.ids(job_ids), *_checked(actor, reason, request))
        return _answers(job_ids, rows)

    def preview_dlq(self, where: DlqFilter, limit: int = 100) -> DlqPreview:
        """How many jobs a filter of the DLQ means now, and the newest of them."""
        [[head], rows] = self._call(
            "PreviewDLQ",
            where.queue or "",
            where.type_key or "",
            -1 if where.reason is None else int(where.reason),
            -1 if where.status is None else int(where.status),
            where.tag or "",
            *documents.span(where.failed_from, where.failed_until),
            needle(where.search) or "",
            max(1, min(limit, MAX_PREVIEW)),
        )
        return DlqPreview(head[0], bool(head[1]), [row[0] for row in rows])

    def get_key_holder(self, key: str) -> KeyHolder | None:
        """The live job that holds an idempotency key."""
        if documents.cut(key, KEY_LIMIT) != key:
            return None
        for job_id, status in self._call("GetKeyHolder", key)[0]:
            return KeyHolder(job_id, JobStatus(status))
        return None

    def edit_job(
        self, job_id: str, edits: Edits, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        """Change a Pending or stopped job. Audited with before and after."""
        who, changes = _checked(actor, reason, request), _changes(check_changes(edits))
        if not documents.is_id(job_id):
            return RepairAnswer(job_id, UNKNOWN)
        [rows] = self._call("EditJob", job_id, *changes, *who)
        return _answers([job_id], rows)[0]

    def drain_worker(
        self, worker_id: str, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        """Ask a worker to end once its replacement is there. Audited the first time."""
        who = _checked(actor, reason, request)
        if not documents.is_id(worker_id):
            return RepairAnswer(worker_id, UNKNOWN)
        [rows] = self._call("DrainWorker", worker_id, *who)
        return _answers([worker_id], rows)[0]


def _checked(actor: str, reason: str | None, request: str | None) -> tuple[str, str, str]:
    """Actor, reason and request as the procedures take them."""
    documents.fitting("actor", check_actor(actor), 100)
    documents.fitting("reason", reason, 1_000)
    return actor, reason or "", request or ""


def _changes(edits: Edits) -> tuple[int, bytes, str, str, int]:
    """Mask, payload, its hash, tags and priority, as the procedures take them."""
    mask, payload, tags, priority = 0, "", "", 0
    if not isinstance(edits.payload, UnsetType):
        mask, payload = mask | _PAYLOAD, edits.payload
    if not isinstance(edits.tags, UnsetType):
        mask |= _CLEAR_TAGS if edits.tags is None else _TAGS
        tags = documents.fitting("tags", edits.tags, 1_000) or ""
    if not isinstance(edits.priority, UnsetType):
        mask, priority = mask | _PRIORITY, edits.priority
    return mask, payload.encode("ascii"), payload_hash(payload), tags, priority


def _answers(targets: Sequence[str], rows: Rows) -> list[RepairAnswer]:
    """One answer per job, in the order of the input; what cannot be an id is unknown."""
    found = {
        row[0]: RepairAnswer(row[0], RESULTS[row[1]], None if row[2] is None else JobStatus(row[2]), *row[3:])
        for row in rows
    }
    return [found.get(target) or RepairAnswer(target, UNKNOWN) for target in targets]
