"""Which actions have to be confirmed, and by which words: one rule for the CLI and The Deck.

What destroys, and what touches many jobs or jobs nobody has named, is done only after its phrase has been typed: the verb with
what it is done to, `purge 12` or `deactivate emails`. In production nothing replaces the typing.
"""

from enum import StrEnum

import msgspec

from chokaq.operations.errors import OperationError

MANY = 25
"""From so many named jobs on an action that could be undone has to be confirmed, too."""


class Action(StrEnum):
    """What an operator does; the value is the verb."""

    CANCEL = "cancel"
    RESURRECT = "resurrect"
    DROP = "drop"
    PURGE = "purge"
    DEACTIVATE = "deactivate"


_ALWAYS = {Action.DROP, Action.PURGE}


class Confirmation(msgspec.Struct, frozen=True):
    """A confirmation that is due before an action."""

    phrase: str
    """What has to be typed."""
    production: bool = False
    """True: it has to be typed whatever else is said."""

    def check(self, typed: str) -> None:
        """Pass when the phrase was typed, whatever its case and blanks; else OperationError: nothing is done."""
        if typed.casefold().split() != self.phrase.casefold().split():
            raise OperationError(f"not confirmed: {self.phrase!r} was to be typed; nothing was changed")

    def waive(self) -> None:
        """Let a plain yes stand for the phrase. Raises OperationError in production."""
        if self.production:
            raise OperationError(
                f"this is production (production: true): {self.phrase!r} has to be typed, --yes does not stand for it; "
                "nothing was changed"
            )

    def refuse_unattended(self) -> None:
        """Always raises OperationError: there is nobody who could type the phrase."""
        way = "run it on a terminal" if self.production else "run it on a terminal, or say --yes"
        raise OperationError(
            f"{self.phrase!r} has to be confirmed and there is nobody to ask: {way}; nothing was changed"
        )


def confirm_jobs(
    action: Action, count: int, *, by_filter: bool = False, production: bool = False
) -> Confirmation | None:
    """What confirms an action on `count` jobs; None when nothing has to.

    Drop and purge always have to be; others when the jobs were chosen by a filter, or are 25 and more.
    """
    if count < 1 or not (action in _ALWAYS or by_filter or count >= MANY):
        return None
    return Confirmation(f"{action} {count}", production)


def confirm_queue(action: Action, queue: str, *, production: bool = False) -> Confirmation:
    """What confirms an action on a whole queue."""
    return Confirmation(f"{action} {queue}", production)
