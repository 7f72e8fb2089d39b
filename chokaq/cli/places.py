"""Saying which database did not answer: what is shown then is a part, and must never look like the whole."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from chokaq.cli.common import Common

if TYPE_CHECKING:
    from chokaq.store.errors import StoreError


@contextmanager
def telling_of(
    common: Common, errors: "Mapping[str, StoreError]", so: str = "what is shown lacks it"
) -> Iterator[dict[str, Any]]:
    """Inside, show what the others answered; afterwards say on stderr who did not, and end with its exit code.

    Gives what belongs into a JSON answer: `unreachable`, by name; nothing when all have answered. `so`: what follows from it.
    """
    from chokaq.cli.guard import exit_code, explain

    told = {name: explain(error, common) for name, error in errors.items()}
    try:
        yield {"unreachable": told} if told else {}
    finally:
        for name, message in told.items():
            sys.stderr.write(f"chokaq: the database {name} does not answer, and {so}: {message}\n")
    for error in errors.values():
        raise typer.Exit(exit_code(error) or 1)
