"""Reading what operators did: who, when, what, why, before and after."""

from collections import deque
from collections.abc import Mapping

import msgspec

from chokaq.operations.cursors import cursor_of, position_of
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import check_id
from chokaq.operations.queues import check_queue
from chokaq.store.protocol import Session
from chokaq.store.records import AuditEntry

MAX_AUDIT_PAGE = 200


class AuditPage(msgspec.Struct, frozen=True):
    """One page of the audit log, newest first."""

    entries: list[AuditEntry]
    after: str | None
    """Pass it to get the next page; None at the end."""


def list_audit(session: Session, target: str | None = None, limit: int = 50, after: str | None = None) -> AuditPage:
    """One page, newest first. `target`: only this job, queue or worker; `limit`: 1 to 200; `after`: of the page before."""
    _check_limit(limit)
    wanted = None if target is None else _target(target)
    behind = None if after is None else _number(position_of("audit", wanted, after))
    found = session.list_audit(wanted, limit + 1, behind)
    entries = found[:limit]
    more = len(found) > limit
    return AuditPage(entries, cursor_of("audit", wanted, str(entries[-1].id)) if more else None)


class PlacedAudit(msgspec.Struct, frozen=True):
    """One page of the audit logs of several databases, newest first."""

    entries: list[tuple[str, AuditEntry]]
    """Each with the name of its database."""
    after: str | None


def list_audits(
    sessions: Mapping[str, Session], target: str | None = None, limit: int = 50, after: str | None = None
) -> PlacedAudit:
    """As `list_audit`, over several databases by name; each log keeps its own order. A cursor belongs to these databases."""
    _check_limit(limit)
    wanted = None if target is None else _target(target)
    bound = [wanted, *sessions]
    behind = {} if after is None else _positions(position_of("audits", bound, after))
    waiting = {
        name: deque(session.list_audit(wanted, limit + 1, behind.get(name))) for name, session in sessions.items()
    }
    entries: list[tuple[str, AuditEntry]] = []
    while len(entries) < limit and any(waiting.values()):
        name = max((name for name in waiting if waiting[name]), key=lambda name: waiting[name][0].at)
        entry = waiting[name].popleft()
        behind[name] = entry.id
        entries.append((name, entry))
    told = ",".join(f"{name}={number}" for name, number in behind.items())
    return PlacedAudit(entries, cursor_of("audits", bound, told) if any(waiting.values()) else None)


def _positions(text: str) -> dict[str, int]:
    pairs = (pair.partition("=") for pair in text.split(","))
    return {name: _number(number) for name, _, number in pairs}


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_AUDIT_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_AUDIT_PAGE} entries, not {limit:,}")


def _target(text: str) -> str:
    """An id in its stored form, or else the name of a queue."""
    try:
        return check_id(text)
    except OperationError:
        return check_queue(text)


def _number(position: str) -> int:
    if not position.isdecimal():
        raise OperationError("this cursor is damaged: begin anew without one")
    return int(position)
