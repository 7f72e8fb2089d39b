"""Pages of the audit log, filtered by actor and action beyond what its index serves."""

from chokaq.deck.shown import AuditLine, AuditPage
from chokaq.operations.audit import MAX_AUDIT_PAGE
from chokaq.operations.cursors import cursor_of, position_of
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import check_id
from chokaq.operations.queues import check_queue
from chokaq.store.protocol import Session
from chokaq.store.records import AuditEntry

LOOKED_AT = 2_000
"""Entries that one page of a filtered log looks at, at most."""


def read_trail(
    session: Session,
    *,
    target: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    limit: int = 50,
    after: str | None = None,
) -> AuditPage:
    """One page, newest first. `actor`, `action`: exactly these, whatever their case. Raises OperationError."""
    if not 1 <= limit <= MAX_AUDIT_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_AUDIT_PAGE} entries, not {limit:,}")
    where = (None if target is None else _target(target), actor, action)
    behind = None if after is None else _number(position_of("trail", where, after))
    found: list[AuditLine] = []
    looked = 0
    while True:
        entries = session.list_audit(where[0], MAX_AUDIT_PAGE if actor or action else limit + 1, behind)
        for entry in entries:
            looked += 1
            if _fits(entry.actor, actor) and _fits(entry.action, action):
                if len(found) == limit:
                    return AuditPage(found, cursor_of("trail", where, str(found[-1].id)))
                found.append(_line(entry))
        if len(entries) < (MAX_AUDIT_PAGE if actor or action else limit + 1):
            return AuditPage(found, None)
        behind = entries[-1].id
        if looked >= LOOKED_AT:
            return AuditPage(found, cursor_of("trail", where, str(behind)))


def _fits(text: str, wanted: str | None) -> bool:
    return wanted is None or text.casefold() == wanted.strip().casefold()


def _line(entry: AuditEntry) -> AuditLine:
    return AuditLine(
        id=entry.id,
        at=entry.at,
        actor=entry.actor,
        action=entry.action,
        target=entry.target,
        reason=entry.reason,
        before=entry.before,
        after=entry.after,
    )


def _target(text: str) -> str:
    try:
        return check_id(text)
    except OperationError:
        return check_queue(text)


def _number(position: str) -> int:
    if not position.isdecimal() or len(position) > 18:
        raise OperationError("this cursor is damaged: begin anew without one")
    return int(position)
