"""`chokaq workers`: the processes that work."""

from typing import Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("workers")(workers)


def workers(
    ctx: typer.Context,
    ended: Annotated[bool, typer.Option("--ended", help="Also those that ended within the last week.")] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the worker processes of every host, newest first."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import WIDE, console, local, number, print_json, safe, span, table
    from chokaq.operations.workers import list_workers

    with common.connected() as (_store, session):
        views = list_workers(session, ended=ended)
    if common.as_json:
        print_json({"workers": views})
        return
    out = console()
    if not views:
        out.print("No workers: start one with `chokaq worker`.")
        return
    wide = out.width >= WIDE
    rows = []
    for view in views:
        figures = view.figures
        rare = (
            number(figures.buffered),
            span(figures.loop_lag_ms),
            f"{figures.memory_kb // 1024} MB",
            local(view.started_at),
        )
        rows.append(
            (
                view.worker_id,
                safe(view.queue) or "[dim]maintenance[/]",
                safe(view.host),
                str(view.pid),
                f"{figures.running}/{view.max_workers}" if view.queue else "-",
                safe(f"ended: {view.ended_cause}" if view.ended_at else f"{span(view.heartbeat_age_ms)} ago"),
                *(rare if wide else ()),
            )
        )
    more = (">buffer", ">lag", ">memory", "started") if wide else ()
    out.print(table(("worker", "~queue", "~host", ">pid", ">run", "seen", *more), rows))
