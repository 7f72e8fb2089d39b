"""`chokaq queues list | show | pause | resume | activate | deactivate | set` (`scale`: chokaq/cli/scale.py)."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.options import ActorOption, ConfigOption, DatabaseOption, JsonOption, ReasonOption, YesOption
from chokaq.cli.reading import seconds
from chokaq.cli.scale import scale

if TYPE_CHECKING:
    from chokaq.store.records import QueueView

CreateOption = Annotated[bool, typer.Option("--create", help="Also when no such queue is known yet.")]
NameArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]


class Override(StrEnum):
    """What an operator can override."""

    MAX_WORKERS = "max-workers"
    FLEET_MAX_WORKERS = "fleet-max-workers"
    EXECUTION_TIMEOUT = "execution-timeout"
    ZOMBIE_TIMEOUT = "zombie-timeout"


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at queues, pause them, override what the YAML says.")
    group.command("list")(list_)
    group.command("show")(show)
    group.command("pause", help="Claim nothing new from a queue, on all workers; running jobs finish.")(
        _switch("pause")
    )
    group.command("resume", help="Undo a pause.")(_switch("resume"))
    group.command("activate", help="Put a deactivated queue back into service.")(_switch("activate"))
    group.command("deactivate")(deactivate)
    group.command("set")(set_)
    group.command("scale")(scale)
    program.add_typer(group, name="queues")


def list_(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """List every queue with its figures and overrides."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.places import telling_of
    from chokaq.operations.databases import placed
    from chokaq.operations.queues import list_queues

    with common.databases() as databases:
        answers, errors = databases.heard(lambda opened: list_queues(opened.session))
        # By name, as in each of them: one that was moved stands beside what is left of it.
        pairs = sorted(placed(answers), key=lambda pair: pair[1].name) if databases.several else placed(answers)
        places = [name for name, _ in pairs] if databases.several else None
    with telling_of(common, errors) as more:
        _print(common, [view for _, view in pairs], many=True, places=places, more=more)


def show(
    ctx: typer.Context,
    queue: NameArgument,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one queue: its figures, how long its longest job has run, and how long each priority has waited."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, number, print_json, span, table
    from chokaq.operations.queues import show_queue

    with common.databases() as databases:
        opened = databases.of_queue(queue)
        detail = databases.run(opened.name, lambda opened: show_queue(opened.session, queue))
    if common.as_json:
        print_json(detail)
        return
    out = console()
    out.print(queue_table([detail.queue], out.width))
    if detail.queue.oldest_running_ms is not None:
        out.print(f"The longest of the jobs that run began {span(detail.queue.oldest_running_ms)} ago.")
    if not detail.priorities:
        out.print("No job is due and waiting.")
        return
    rows = [(str(view.priority), number(view.waiting), span(view.oldest_due_ms)) for view in detail.priorities]
    out.print(table((">priority", ">waiting", ">oldest"), rows))


def _switch(verb: str) -> Callable[..., None]:
    def switch(
        ctx: typer.Context,
        queue: NameArgument,
        reason: ReasonOption = None,
        actor: ActorOption = None,
        create: CreateOption = False,
        config: ConfigOption = None,
        database: DatabaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        common = Common.of(ctx, config, database, as_json)
        from chokaq import operations

        operator = who(actor, reason)
        change = getattr(operations, f"{verb}_queue")
        with common.databases() as databases:
            view = change(databases.of_queue(queue).session, queue, operator, create=create)
        _print(common, [view])

    return switch


def deactivate(
    ctx: typer.Context,
    queue: NameArgument,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    create: CreateOption = False,
    yes: YesOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a queue out of service: nothing new is claimed from it until it is activated again."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.confirm import ask
    from chokaq.operations.confirm import Action, confirm_queue
    from chokaq.operations.queues import check_queue, deactivate_queue

    operator = who(actor, reason)
    confirmation = confirm_queue(Action.DEACTIVATE, check_queue(queue), production=common.settings().production)
    ask(confirmation, yes, [f"This takes the queue {queue} out of service, on all workers everywhere."])
    with common.databases() as databases:
        view = deactivate_queue(databases.of_queue(queue).session, queue, operator, create=create)
    _print(common, [view])


def set_(
    ctx: typer.Context,
    queue: NameArgument,
    max_workers: Annotated[int | None, typer.Option(help="Concurrent handlers per child: 1 to 10,000.")] = None,
    fleet_max_workers: Annotated[int | None, typer.Option(help="Exact cap over all workers: 1 to 100,000.")] = None,
    execution_timeout: Annotated[str | None, typer.Option(help="1s to 24h.")] = None,
    zombie_timeout: Annotated[
        str | None, typer.Option(help="At least three heartbeats of the queue, at most 24h.")
    ] = None,
    clear: Annotated[
        list[Override] | None, typer.Option("--clear", help="Let the YAML rule again; repeatable.")
    ] = None,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    create: CreateOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Override settings of a queue on all its workers at once; an override holds until it is cleared."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.queues import set_queue

    given: dict[Override, Any] = {
        Override.MAX_WORKERS: max_workers,
        Override.FLEET_MAX_WORKERS: fleet_max_workers,
        Override.EXECUTION_TIMEOUT: _seconds("--execution-timeout", execution_timeout),
        Override.ZOMBIE_TIMEOUT: _seconds("--zombie-timeout", zombie_timeout),
    }
    change = {option.replace("-", "_"): value for option, value in given.items() if value is not None}
    for option in clear or []:
        if given[option] is not None:
            raise typer.BadParameter(f"--{option} is both set and cleared", param_hint="--clear")
        change[option.replace("-", "_")] = None
    operator, heartbeat = who(actor, reason), common.settings().queue(queue).heartbeat
    with common.databases() as databases:
        session = databases.of_queue(queue).session
        view = set_queue(session, queue, operator, create=create, heartbeat=heartbeat, **change)
    _print(common, [view])


def _seconds(option: str, text: str | None) -> float | None:
    return None if text is None else seconds(option, text)


def _print(
    common: Common,
    views: "list[QueueView]",
    *,
    many: bool = False,
    places: list[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    from chokaq.cli.output import console, print_json, with_places

    if common.as_json:
        print_json({"queues": with_places(views, places), **(more or {})} if many else views[0])
        return
    out = console()
    if not views:
        out.print("No queues yet: none was served, set, or given a job.")
        return
    out.print(queue_table(views, out.width, places))


def queue_table(views: "list[QueueView]", width: int, places: list[str] | None = None) -> Any:
    """Queues with their figures; overrides too when there is room. `places`: their databases, where there are several."""
    from chokaq.cli.output import WIDE, limit, number, safe, span, table

    wide = width >= WIDE
    rows = []
    for index, view in enumerate(views):
        live = view.live
        overrides = (
            number(live.max_workers),
            number(live.fleet_max_workers),
            limit(live.execution_timeout_ms),
            limit(live.zombie_timeout_ms),
        )
        rows.append(
            (
                safe(view.name),
                *(() if places is None else (places[index],)),
                mode(view),
                number(view.pending),
                number(view.scheduled),
                number(view.fetched + view.processing),
                span(view.oldest_due_ms),
                number(view.live_workers),
                *(overrides if wide else ()),
            )
        )
    more = (">max workers", ">fleet", ">timeout", ">zombie") if wide else ()
    place = () if places is None else ("database",)
    return table(("~queue", *place, "mode", ">due", ">later", ">run", ">oldest", ">live", *more), rows)


def mode(view: "QueueView") -> str:
    """Whether a queue is served, in a word; a star tells of overrides."""
    live = view.live
    word = "[red]inactive[/]" if not live.active else "[yellow]paused[/]" if live.paused else "[green]open[/]"
    numbers = (live.max_workers, live.fleet_max_workers, live.execution_timeout_ms, live.zombie_timeout_ms)
    return word + ("*" if any(value is not None for value in numbers) else "")
