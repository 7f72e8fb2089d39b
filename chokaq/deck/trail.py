"""Pages of the audit log, filtered by target, actor and action.

One of them is read by its index; where more are given the others are looked for among what that one finds.
"""

from collections.abc import Callable

from chokaq.deck.shown import AuditLine, AuditPage
from chokaq.operations.actor import MAX_ACTOR
from chokaq.operations.audit import MAX_AUDIT_PAGE
from chokaq.operations.cursors import cursor_of, position_of
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import check_id
from chokaq.operations.queues import check_queue
from chokaq.store.protocol import Session
from chokaq.store.records import AuditEntry

LOOKED_AT = 2_000
"""Entries that one page looks at, at most, when more than one filter is given."""
MAX_ACTION = 50


def read_trail(
    session: Session,
    *,
    target: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    limit: int = 50,
    after: str | None = None,
) -> AuditPage:
    """One page, newest first. `actor`, `action`: exactly these, in ASCII letters of either case. Raises OperationError."""
    if not 1 <= limit <= MAX_AUDIT_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_AUDIT_PAGE} entries, not {limit:,}")
    where = (None if target is None else _target(target), _given(actor), _given(action))
    behind = None if after is None else _number(position_of("trail", where, after))
    if not _is_possible(where[1], MAX_ACTOR) or not _is_possible(where[2], MAX_ACTION, ascii_only=True):
        return AuditPage([], None)
    fits = _others(*where)
    size = limit + 1 if fits is None else MAX_AUDIT_PAGE
    found: list[AuditLine] = []
    looked = 0
    while True:
        entries = session.list_audit(where[0], size, behind, actor=where[1], action=where[2])
        for entry in entries:
            if fits is None or fits(entry):
                if len(found) == limit:
                    return AuditPage(found, cursor_of("trail", where, str(found[-1].id)))
                found.append(_line(entry))
        if len(entries) < size:
            return AuditPage(found, None)
        looked += len(entries)
        behind = entries[-1].id
        if looked >= LOOKED_AT:
            return AuditPage(found, cursor_of("trail", where, str(behind)), partial=True)


def _others(target: str | None, actor: str | None, action: str | None) -> Callable[[AuditEntry], bool] | None:
    """Whether an entry fits the filters that the store leaves to us: all but the first one given. None: there are no others."""
    others = [
        (name, text.casefold())
        for name, text, earlier in (("actor", actor, target), ("action", action, target or actor))
        if text is not None and earlier is not None
    ]
    return (lambda entry: all(getattr(entry, name).casefold() == text for name, text in others)) if others else None


def _given(text: str | None) -> str | None:
    return (text or "").strip() or None


def _is_possible(text: str | None, limit: int, *, ascii_only: bool = False) -> bool:
    """Whether any entry could hold it: what no store can keep as text is nobody's name."""
    if text is None:
        return True
    if not all(sign.isprintable() or sign in "\n\t" for sign in text) or (ascii_only and not text.isascii()):
        return False
    return len(text.encode("utf-16-le")) // 2 <= limit


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
