"""Who does something, and why: what every change leaves in the audit log."""

import getpass
import socket
from typing import NamedTuple

from chokaq.operations.errors import OperationError

MAX_ACTOR = 100
MAX_REASON = 1_000


class By(NamedTuple):
    """The operator behind a change. Build it with `by`."""

    actor: str
    reason: str | None


def by(actor: str, reason: str | None = None) -> By:
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
    return By(actor, reason or None)


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
