"""`chokaq workers list | drain`: the processes that work. Bare, it lists them."""

from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.options import ActorOption, ConfigOption, DatabaseOption, JsonOption, ReasonOption

if TYPE_CHECKING:
    from rich.console import Console

    from chokaq.store.records import WorkerView

EndedOption = Annotated[bool, typer.Option("--ended", help="Also those that ended within the last week.")]


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(invoke_without_command=True, help="Look at the worker processes of every host, and drain one.")
    group.callback()(workers)
    group.command("list")(list_)
    group.command("drain")(drain)
    program.add_typer(group, name="workers")


def workers(
    ctx: typer.Context,
    ended: EndedOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at the worker processes of every host, newest first, and drain one. Without a command: list them."""
    common = Common.of(ctx, config, database, as_json)
    if ctx.invoked_subcommand is None:
        _list(common, ended)


def list_(
    ctx: typer.Context,
    ended: EndedOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the worker processes of every host, newest first."""
    asked_before = ctx.parent is not None and bool(ctx.parent.params.get("ended"))
    _list(Common.of(ctx, config, database, as_json), ended or asked_before)


def drain(
    ctx: typer.Context,
    worker_ids: Annotated[list[str], typer.Argument(metavar="WORKER...", help="Worker ids, as `workers` lists them.")],
    reason: ReasonOption = None,
    actor: ActorOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let workers finish what they run, take nothing new, and end; their supervisors replace them.

    Exit code 1 when one is unknown or has ended already.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.answers import report
    from chokaq.operations.repair import Repaired
    from chokaq.operations.workers import check_workers, drain_workers

    operator, wanted = who(actor, reason), check_workers(worker_ids)
    with common.databases() as databases:
        answers = drain_workers(databases, wanted, operator)
    report(common, Repaired(answers), "told to drain", listed="workers")


def _list(common: Common, ended: bool) -> None:
    from chokaq.cli.output import console, print_json, with_places
    from chokaq.cli.places import telling_of
    from chokaq.operations.databases import placed
    from chokaq.operations.workers import list_workers

    with common.databases() as databases:
        answers, errors = databases.heard(lambda opened: list_workers(opened.session, ended=ended))
        pairs = placed(answers)
        if databases.several:
            pairs.sort(key=lambda pair: pair[1].started_at, reverse=True)
        places = [name for name, _ in pairs] if databases.several else None
    views = [view for _, view in pairs]
    with telling_of(common, errors) as more:
        if common.as_json:
            print_json({"workers": with_places(views, places), **more})
        else:
            _print(console(), views, places)


def _print(out: "Console", views: "list[WorkerView]", places: list[str] | None) -> None:
    from chokaq.cli.output import WIDE, local, number, safe, span, table

    if not views:
        out.print("No workers: start one with `chokaq worker`.")
        return
    wide = out.width >= WIDE
    rows = []
    for index, view in enumerate(views):
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
                *(() if places is None else (places[index],)),
                safe(view.host),
                str(view.pid),
                f"{figures.running}/{view.max_workers}" if view.queue else "-",
                safe(f"ended: {view.ended_cause}" if view.ended_at else f"{span(view.heartbeat_age_ms)} ago"),
                *(rare if wide else ()),
            )
        )
    more = (">buffer", ">lag", ">memory", "started") if wide else ()
    place = () if places is None else ("database",)
    out.print(table(("worker", "~queue", *place, "~host", ">pid", ">run", "seen", *more), rows))
