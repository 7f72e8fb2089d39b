"""Prints what an action did with each job, and ends with 1 when one was not accepted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit

if TYPE_CHECKING:
    from chokaq.operations import Repaired
    from chokaq.store.repairs import RepairAnswer


def report(
    common: Common, repaired: "Repaired", done: str, *, listed: str = "jobs", more: Mapping[str, Any] | None = None
) -> None:
    """One line per job, refusals on stderr, then the counts; with --json one object with `more` in it.

    `done`: what an accepted job was, e.g. `purged`. Raises typer.Exit when one was not accepted.
    """
    counts = repaired.counts
    if common.as_json:
        from chokaq.cli.output import print_json

        print_json({**(more or {}), "counts": counts, listed: repaired.answers})
    else:
        for answer in repaired.answers:
            accepted = answer.result == "accepted"
            typer.echo(f"{answer.id} {done if accepted else refusal(answer)}", err=not accepted)
        if len(repaired.answers) > 1:
            refused = [f"{count:,} {kind}" for kind, count in counts.items() if count and kind != "accepted"]
            typer.echo(", ".join([f"{counts['accepted']:,} {done}", *refused]).replace("_", " "))
    if not repaired.complete:
        raise typer.Exit(Exit.PROBLEM)


def refusal(answer: "RepairAnswer") -> str:
    """Why a job was left as it is."""
    match answer.result:
        case "unknown":
            return "does not exist here"
        case "key_conflict":
            return f"unchanged: the live job {answer.holder} holds its key; --without-key resurrects it without one"
        case _:
            if answer.status is None:
                return "has ended, or is a maintenance process; unchanged"
            return f"is {answer.status.label}; unchanged"
