"""`chokaq audit`: who did what, when and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.options import AfterOption, ConfigOption, DatabaseOption, JsonOption

if TYPE_CHECKING:
    from rich.console import Console

    from chokaq.operations import AuditPage


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("audit")(audit)


def audit(
    ctx: typer.Context,
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help="Only this job, queue or worker.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="1 to 200.")] = 50,
    after: AfterOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what operators did, newest first; with --json also what was before and after."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import audit_json
    from chokaq.operations.audit import list_audit

    with common.connected() as (_store, session):
        page = list_audit(session, target, limit, after)
    if common.as_json:
        print_json({"entries": audit_json(page.entries), "after": page.after})
    else:
        _print(console(), page)


def _print(out: "Console", page: "AuditPage") -> None:
    from chokaq.cli.output import WIDE, local, safe, table
    from chokaq.cli.tables import print_more

    if not page.entries:
        out.print("No operator did anything of the kind.")
        return
    wide = out.width >= WIDE
    rows = [
        (
            local(entry.at),
            safe(entry.actor),
            safe(entry.action),
            safe(entry.target),
            safe(entry.reason or ""),
            *((safe(entry.before or ""), safe(entry.after or "")) if wide else ()),
        )
        for entry in page.entries
    ]
    # Whole ids, as everywhere; a queue's name may be long.
    target = "target" if all(len(entry.target) <= 26 for entry in page.entries) else "~target"
    more = ("~before", "~after") if wide else ()
    out.print(table(("when", "~who", "~what", target, "~why", *more), rows))
    print_more(out, page.after)
