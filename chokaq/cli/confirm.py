"""Asks for the phrase that confirms an action (chokaq.operations.confirm says which action, and which phrase)."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from chokaq.operations import Confirmation


def ask(confirmation: "Confirmation | None", yes: bool, about: Sequence[str] = ()) -> None:
    """Return when the action may go on. `about`: what it would do, shown before the question. Raises OperationError.

    The question stands on stderr, so that `--json` stays alone on stdout.
    """
    if confirmation is None:
        return
    if yes:
        confirmation.waive()
        return
    if not _somebody_is_there():
        confirmation.refuse_unattended()
    for line in about:
        typer.echo(line, err=True)
    typer.echo(f"Type `{confirmation.phrase}` to do it: ", err=True, nl=False)
    confirmation.check(sys.stdin.readline())


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()
