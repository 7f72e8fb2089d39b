"""Changing payload, tags and priority of a job that waits or has stopped, within the bounds of an enqueue."""

from collections.abc import Callable, Iterable

import orjson
from msgspec import UNSET, UnsetType

from chokaq.jobs import envelope
from chokaq.jobs.codec import escape_non_ascii
from chokaq.jobs.errors import EnqueueError
from chokaq.jobs.ids import new_id
from chokaq.lifecycle.states import Pillar
from chokaq.operations.actor import By, require_operator
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import check_id
from chokaq.operations.telling import command
from chokaq.store.protocol import Session
from chokaq.store.records import JobView
from chokaq.store.repairs import Edits, RepairAnswer

PayloadCheck = Callable[[JobView, str], None]
"""Raises OperationError when a payload does not fit the job's contract (see chokaq.operations.contracts)."""


def check_edits(
    *,
    payload: str | UnsetType = UNSET,
    tags: str | Iterable[str] | UnsetType | None = UNSET,
    priority: int | UnsetType = UNSET,
    max_payload_bytes: int,
) -> Edits:
    """Edits within the bounds of an enqueue. `payload`: JSON text, kept as it is but for non-ASCII, which is escaped.

    Raises OperationError naming the value and the limit.
    """
    try:
        return Edits(
            payload=UNSET if isinstance(payload, UnsetType) else _payload(payload, max_payload_bytes),
            tags=UNSET if isinstance(tags, UnsetType) else envelope.check_tags(tags),
            priority=UNSET if isinstance(priority, UnsetType) else envelope.check_priority(priority),
        )
    except EnqueueError as error:
        raise OperationError(str(error)) from None


@command("edit")
def edit_job(
    session: Session,
    job_id: str,
    edits: Edits,
    who: By,
    *,
    check: PayloadCheck | None = None,
    within: Pillar | None = None,
) -> RepairAnswer:
    """Change one job where it stands: Pending, or in the DLQ and not Dropped.

    `check`: what a new payload has to pass, given the job. `within`: refuse a job that stands in another pillar.
    """
    require_operator(who)
    wanted = check_id(job_id)
    if edits == Edits():
        raise OperationError("nothing to edit: name a payload, tags or a priority")
    if within is not None or (check is not None and isinstance(edits.payload, str)):
        job = session.get_job(wanted)
        if job is None:
            return RepairAnswer(wanted, "unknown")
        if within not in (None, job.pillar):
            return RepairAnswer(wanted, "wrong_state", job.status)
        check_payload(job, edits, check)
    return session.edit_job(wanted, edits, who.actor, who.reason, request=new_id())


def check_payload(job: JobView, edits: Edits, check: PayloadCheck | None) -> None:
    """Hold a new payload against the contract of the job it is for. Raises OperationError when it does not fit."""
    if check is not None and isinstance(edits.payload, str):
        check(job, edits.payload)


def _payload(payload: str, limit: int) -> str:
    return envelope.check_payload(ascii_json(payload), "this job", limit)


def ascii_json(text: str) -> str:
    """JSON text as the stores keep it. Raises OperationError when it is not JSON."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise OperationError(f"the payload is not JSON: {error}") from None
    return escape_non_ascii(text.strip())
