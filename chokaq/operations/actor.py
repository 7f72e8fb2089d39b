"""Who does something, and why: what every change leaves in the audit log."""

import getpass
import socket
from enum import StrEnum
from typing import NamedTuple

from chokaq.operations.errors import NotAllowed, OperationError

MAX_ACTOR = 100
MAX_REASON = 1_000


class Role(StrEnum):
    """What somebody may do."""

    VIEWER = "viewer"
    """Look at everything, payloads included."""
    OPERATOR = "operator"
    """Change it, too."""


class By(NamedTuple):
    """The operator behind a change. Build it with `by`."""

    actor: str
    reason: str | None
    role: Role = Role.OPERATOR
    """Whoever has the database's password is an operator: only The Deck knows viewers."""


def by(actor: str, reason: str | None = None, *, role: Role = Role.OPERATOR) -> By:
    """Checked: an actor of 1 to 100 characters, a reason of at most 1,000 (blank: none). Raises OperationError."""
    actor = actor.strip()
    if not actor:
        raise OperationError("name who does it: the actor is empty")
    reason = reason.strip() if reason is not None else None
    for what, text, limit in (("actor", actor, MAX_ACTOR), ("reason", reason or "", MAX_REASON)):
        if len(text.encode("utf-16-le", "replace")) // 2 > limit:
            raise OperationError(f"the {what} is longer than {limit:,} characters")
        if not all(sign.isprintable() or sign in "\n\t" for sign in text):
            raise OperationError(f"the {what} holds control characters")
    return By(actor, reason or None, role)


def require_operator(who: By) -> None:
    """Raises NotAllowed for a viewer. Every operation that changes something asks this first."""
    if who.role is not Role.OPERATOR:
        raise NotAllowed(f"{who.actor} may look but not change anything (role {who.role.value}); nothing was changed")


def require_reason(who: By) -> None:
    """Raises OperationError when no reason was given: for what cannot be undone."""
    if who.reason is None:
        raise OperationError("this is for ever: give the reason (--reason), which stays in the audit log")


def default_actor() -> str:
    """The operating system's user and this host: `anna@web-1`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"[:MAX_ACTOR]
