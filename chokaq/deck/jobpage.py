"""Everything about one job."""

from datetime import datetime

import msgspec
import orjson

from chokaq.config.settings import Settings
from chokaq.deck.board import claimed
from chokaq.deck.shown import JobPage
from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.operations.jobs import show_job
from chokaq.operations.risks import resurrection_risks
from chokaq.store.protocol import Session
from chokaq.store.records import JobView
from chokaq.store.repairs import KeyHolder

SHOWN_PAYLOAD = 200_000
"""Characters of a payload that a page shows."""


def read_job(session: Session, job_id: str, settings: Settings, *, types_known: bool, now: datetime) -> JobPage:
    """The job, who holds it, what a resurrection would risk. `now`: the database's clock. Raises UnknownJob."""
    detail = show_job(session, job_id)
    job = detail.job
    raw = job.payload or ""
    payload = pretty(raw)
    stopped = job.pillar is Pillar.DLQ
    held = job.status in (JobStatus.FETCHED, JobStatus.PROCESSING) and job.worker_id is not None
    return JobPage(
        detail=msgspec.structs.replace(detail, job=msgspec.structs.replace(job, payload=raw[:SHOWN_PAYLOAD])),
        payload=payload[:SHOWN_PAYLOAD],
        payload_bytes=len(raw),
        payload_cut=len(payload) > SHOWN_PAYLOAD,
        headers=_headers(job),
        owner=claimed(session, job.worker_id, settings) if held and job.worker_id is not None else None,
        risks=resurrection_risks(job, now, _holder(session, job)) if stopped else [],
        type_known=types_known,
        editable=job.status is JobStatus.PENDING or (stopped and job.status is not JobStatus.DROPPED),
    )


def pretty(payload: str) -> str:
    """JSON with two blanks a level, escapes undone; as it is when it is no JSON, or holds numbers that would not survive."""
    try:
        told = orjson.loads(payload)
        shown = orjson.dumps(told, option=orjson.OPT_INDENT_2).decode()
        return shown if orjson.loads(shown) == told and not _has_long_numbers(payload) else payload
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return payload


def _has_long_numbers(payload: str) -> bool:
    """Whether a number has more digits than a float keeps: showing another one than is stored would be a lie."""
    digits = 0
    for sign in payload:
        digits = digits + 1 if sign.isdigit() else 0 if sign != "." else digits
        if digits > 15:
            return True
    return False


def _holder(session: Session, job: JobView) -> KeyHolder | None:
    return None if job.idempotency_key is None else session.get_key_holder(job.idempotency_key)


def _headers(job: JobView) -> dict[str, str]:
    try:
        found = orjson.loads(job.headers or "{}")
    except orjson.JSONDecodeError:
        return {"headers": job.headers or ""}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
