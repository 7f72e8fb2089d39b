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
    from chokaq.cli.output import console, print_json, with_places
    from chokaq.cli.tables import audit_json
    from chokaq.operations.audit import AuditPage, list_audit, list_audits

    with common.databases() as databases:
        if not databases.several:
            page = list_audit(databases.open(databases.names[0]).session, target, limit, after)
            places = None
        else:
            sessions = {name: databases.open(name).session for name in databases.names}
            merged = list_audits(sessions, target, limit, after)
            page = AuditPage([entry for _, entry in merged.entries], merged.after)
            places = [name for name, _ in merged.entries]
    if common.as_json:
        print_json({"entries": with_places(audit_json(page.entries), places), "after": page.after})
    else:
        _print(console(), page, places)


def _print(out: "Console", page: "AuditPage", places: list[str] | None) -> None:
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
            *(() if places is None else (places[index],)),
            safe(entry.reason or ""),
            *((safe(entry.before or ""), safe(entry.after or "")) if wide else ()),
        )
        for index, entry in enumerate(page.entries)
    ]
    # Whole ids, as everywhere; a queue's name may be long.
    target = "target" if all(len(entry.target) <= 26 for entry in page.entries) else "~target"
    more = ("~before", "~after") if wide else ()
    place = () if places is None else ("database",)
    out.print(table(("when", "~who", "~what", target, *place, "~why", *more), rows))
    print_more(out, page.after)
