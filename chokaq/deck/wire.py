"""Records as JSON for programs: states and reasons by name, instants in ISO 8601, and the schemas that say so."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, IntEnum
from typing import Any

import msgspec
import orjson
from fastapi import Response

from chokaq.deck import shown
from chokaq.deck.access import Refusal
from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope
from chokaq.operations.circuit_history import CircuitHistory
from chokaq.operations.circuits import CircuitStatus
from chokaq.operations.repair import Preview
from chokaq.store.circuits import CircuitOrder
from chokaq.store.records import CancelAnswer, QueueView
from chokaq.store.repairs import RepairAnswer

PROBLEM = "application/problem+json"
_NAMED: tuple[type[IntEnum], ...] = (JobStatus, FailureReason, KeyScope, CircuitState, Forced)
_RECORDS: tuple[type, ...] = (
    shown.Overview,
    shown.Charts,
    shown.QueueRow,
    shown.PriorityRow,
    shown.JobsPage,
    shown.JobPage,
    shown.WorkerRow,
    shown.AuditPage,
    shown.CircuitTimeline,
    shown.Setting,
    CircuitStatus,
    CircuitHistory,
    CircuitOrder,
    CancelAnswer,
    RepairAnswer,
    QueueView,
    Refusal,
    Preview,
)
_PREFIX = "#/components/schemas/{name}"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error, as RFC 9457 has it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = []
    """What is wrong with which part of the request."""


def name_of(member: Enum) -> str:
    """The name that people see."""
    return str(getattr(member, "label", member.name.lower()))


def plain(value: Any) -> Any:
    """A record out of what JSON knows."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, _NAMED):
        return name_of(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def answer(value: Any, status: int = 200) -> Response:
    """A record, or a list of them."""
    return Response(orjson.dumps(plain(value)), status, media_type="application/json")


def problem(
    status: int,
    title: str,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error."""
    told = Problem(title=title, status=status, detail=detail, errors=errors or [])
    return Response(orjson.dumps(plain(told)), status, dict(headers or {}), media_type=PROBLEM)


def schemas() -> dict[str, Any]:
    """The components of the OpenAPI document."""
    _, found = msgspec.json.schema_components([*_RECORDS, Problem], ref_template=_PREFIX)
    for kind in _NAMED:
        if kind.__name__ in found:
            found[kind.__name__] = {
                "title": kind.__name__,
                "type": "string",
                "enum": [name_of(member) for member in kind],
            }
    return found


def reference(record: type, *, many: bool = False, or_null: bool = False) -> dict[str, Any]:
    """The schema of an answer."""
    one: dict[str, Any] = {"$ref": _PREFIX.format(name=record.__name__)}
    if or_null:
        return {"anyOf": [one, {"type": "null"}]}
    return {"type": "array", "items": one} if many else one


def returns(record: type, *, many: bool = False, or_null: bool = False) -> dict[int | str, dict[str, Any]]:
    """What an endpoint answers."""
    failed = {"content": {PROBLEM: {"schema": reference(Problem)}}}
    told = {
        "content": {"application/json": {"schema": reference(record, many=many, or_null=or_null)}},
        "description": "Found.",
    }
    words = {
        400: "Out of bounds: `detail` says what to do.",
        401: "Who is it?",
        403: "Not allowed.",
        404: "There is no such job.",
        422: "Not what the description asks for.",
        429: "Too many wrong tokens.",
        503: "The database is away.",
    }
    return {200: told, **{status: failed | {"description": text} for status, text in words.items()}}
