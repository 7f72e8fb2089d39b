"""`chokaq circuits [list] | history | force`: the circuit breakers of the job types, over all workers."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.options import (
    ActorOption,
    AfterOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    LimitOption,
    ReasonOption,
)
from chokaq.cli.reading import seconds

if TYPE_CHECKING:
    from rich.console import Console

    from chokaq.operations.circuit_history import CircuitHistory
    from chokaq.operations.circuits import CircuitStatus

TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="The job type's key.")]


class Order(StrEnum):
    """What a circuit can be forced to."""

    OPEN = "open"
    CLOSED = "closed"
    CLEAR = "clear"


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        invoke_without_command=True,
        help="Look at the circuit breakers of the job types, and force them open or closed. Alone: `list`.",
    )
    group.callback()(_alone)
    group.command("list")(list_)
    group.command("history")(history)
    group.command("force")(force)
    program.add_typer(group, name="circuits")


def _alone(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    if ctx.invoked_subcommand is None:
        list_(ctx, config, database, as_json)
    else:
        Common.of(ctx, config, database, as_json)


def list_(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """List every job type whose circuit has met a failure or an order on a live worker, the open ones first."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json, with_places
    from chokaq.cli.places import telling_of
    from chokaq.operations.circuits import list_circuits
    from chokaq.operations.databases import placed

    with common.databases() as databases:
        answers, errors = databases.heard(lambda opened: list_circuits(opened.session))
        pairs = placed(answers)
        places = [name for name, _ in pairs] if databases.several else None
    found = [circuit for _, circuit in pairs]
    with telling_of(common, errors) as more:
        if common.as_json:
            print_json({"circuits": with_places(found, places), **more})
            return
        out = console()
        if found:
            out.print(circuit_table(found, out.width, places))
        elif not errors:
            _tell_none(out)


def _tell_none(out: Any) -> None:
    out.print("Every circuit is closed: no live worker reports a failure, and no order stands.")


def history(
    ctx: typer.Context,
    type_key: TypeArgument,
    since: Annotated[str | None, typer.Option(help="Only the last 24h, 90m, ...; at most 7d.")] = None,
    tries: Annotated[
        bool, typer.Option("--tries", help="Also when open circuits tried a job, and were opened again.")
    ] = False,
    limit: LimitOption = 50,
    after: AfterOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what the circuits of a job type did within the last 7 days, and who ordered what about it, newest first."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.operations.circuit_history import list_circuit_events

    within = None if since is None else seconds("--since", since)
    with common.databases() as databases:
        session = databases.one("a history of circuits").session
        found = list_circuit_events(session, type_key, limit, after, since=within, tries=tries)
    if common.as_json:
        print_json(found)
    else:
        _print_history(console(), found)


def _print_history(out: "Console", found: "CircuitHistory") -> None:
    from chokaq.cli.output import local, number, safe, table
    from chokaq.cli.tables import print_more
    from chokaq.operations.circuit_history import event_words

    if not found.events:
        out.print("Nothing of the kind: no circuit of this type was opened or closed, and nobody ordered anything.")
        return
    rows = [
        (
            local(event.at),
            event_words(event),
            safe(event.actor or event.host or "-"),
            safe(event.worker_id[-8:] if event.worker_id else "-"),
            safe(event.queue or "-"),
            number(event.failures),
            safe(event.reason or event.last_error or "-"),
        )
        for event in found.events
    ]
    out.print(table(("when", "what", "~who, where", "worker", "~queue", ">failures", "~error, why"), rows))
    print_more(out, found.after)


def force(
    ctx: typer.Context,
    type_key: TypeArgument,
    order: Annotated[
        Order, typer.Argument(help="open: its jobs wait; closed: they run, whatever fails; clear: its own rule again.")
    ],
    reason: ReasonOption = None,
    actor: ActorOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Order the circuits of a job type on every worker, those started later too, until it is cleared. Running jobs go on.

    With several databases the order is given in each of them.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json, with_places
    from chokaq.cli.places import telling_of
    from chokaq.operations.circuits import force_circuit

    operator = who(actor, reason)
    with common.databases() as databases:
        answers, errors = databases.heard(lambda opened: force_circuit(opened.session, type_key, order.value, operator))
        places = list(answers) if databases.several else None
    found = list(answers.values())
    with telling_of(common, errors, "the order was not given there") as more:
        if common.as_json:
            print_json(found[0] if places is None else {"circuits": with_places(found, places), **more})
            return
        out = console()
        out.print(circuit_table(found, out.width, places))
    if not any(status.workers for status in found):
        out.print(
            "No live worker has met a failure of this type so far. Is the key right? Workers follow within seconds."
        )


_WORDS = {"OPEN": "[red]open[/]", "HALF_OPEN": "[yellow]half-open[/]", "CLOSED": "[green]closed[/]"}


def circuit_table(circuits: "list[CircuitStatus]", width: int, places: list[str] | None = None) -> Any:
    """Circuits with what their workers said; who forced them and why when there is room. `places`: their databases."""
    from chokaq.cli.output import WIDE, local, number, safe, span, table

    wide = width >= WIDE
    rows = []
    for index, circuit in enumerate(circuits):
        order = circuit.order
        rare = (
            local(circuit.changed_at),
            "-" if order is None else f"{safe(order.actor)}, {local(order.at)}",
            safe(order.reason) if order is not None and order.reason else "-",
        )
        rows.append(
            (
                safe(circuit.type_key),
                *(() if places is None else (places[index],)),
                _WORDS[circuit.state.name] + (" (forced)" if order is not None else ""),
                f"{circuit.open}/{circuit.half_open}/{circuit.workers}",
                number(circuit.failures),
                span(circuit.next_probe_ms),
                safe(circuit.last_error or "-"),
                *(rare if wide else ()),
            )
        )
    more = ("since", "~forced by", "~why") if wide else ()
    place = () if places is None else ("database",)
    return table(("~type", *place, "state", ">open/half/workers", ">failures", ">next try", "~last error", *more), rows)
