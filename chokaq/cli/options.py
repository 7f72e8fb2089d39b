"""Options that several commands take, and groups of them (see `chokaq.cli.spread`)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.spread import Spread

if TYPE_CHECKING:
    from chokaq.operations import By

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="The YAML file; else $CHOKAQ_CONFIG, else ./chokaq.yaml.")
]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="NAME|URL",
        help="One of several databases, or the URL of another than the configuration names.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer with JSON on stdout, and nothing else there.")]
ActorOption = Annotated[
    str | None, typer.Option("--actor", help="Who does this, for the audit log; default: your user on this host.")
]
ReasonOption = Annotated[str | None, typer.Option("--reason", "-r", help="Why, for the audit log.")]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask for confirmation. Refused where production: true is set.")
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", help="Entries of a page: 1 to 500.")]
AfterOption = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Go on behind a page, with the filter it came with.")
]


def _common(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> Common:
    return Common.of(ctx, config, database, as_json)


def _operator(reason: ReasonOption = None, actor: ActorOption = None) -> "By":
    return who(actor, reason)


Shared = Annotated[Common, Spread(_common)]
"""The configuration, the database and how to answer; a command names it last."""
Operator = Annotated["By", Spread(_operator)]
"""Who acts, and why."""
