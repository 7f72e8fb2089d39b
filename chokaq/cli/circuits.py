"""`chokaq circuits [list] | force`: the circuit breakers of the job types, over all workers."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.options import ActorOption, ConfigOption, DatabaseOption, JsonOption, ReasonOption

if TYPE_CHECKING:
    from chokaq.operations.circuits import CircuitStatus


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
    from chokaq.cli.output import console, print_json
    from chokaq.operations.circuits import list_circuits

    with common.connected() as (_store, session):
        found = list_circuits(session)
    if common.as_json:
        print_json({"circuits": found})
        return
    out = console()
    if found:
        out.print(circuit_table(found, out.width))
    else:
        out.print("Every circuit is closed: no live worker reports a failure, and no order stands.")


def force(
    ctx: typer.Context,
    type_key: Annotated[str, typer.Argument(metavar="TYPE", help="The job type's key.")],
    order: Annotated[
        Order, typer.Argument(help="open: its jobs wait; closed: they run, whatever fails; clear: its own rule again.")
    ],
    reason: ReasonOption = None,
    actor: ActorOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Order the circuits of a job type on every worker, those started later too, until it is cleared. Running jobs go on."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.operations.circuits import force_circuit

    operator = who(actor, reason)
    with common.connected() as (_store, session):
        found = force_circuit(session, type_key, order.value, operator)
    if common.as_json:
        print_json(found)
        return
    out = console()
    out.print(circuit_table([found], out.width))
    if not found.workers:
        out.print(
            "No live worker has met a failure of this type so far. Is the key right? Workers follow within seconds."
        )


_WORDS = {"OPEN": "[red]open[/]", "HALF_OPEN": "[yellow]half-open[/]", "CLOSED": "[green]closed[/]"}


def circuit_table(circuits: "list[CircuitStatus]", width: int) -> Any:
    """Circuits with what their workers said; who forced them and why when there is room."""
    from chokaq.cli.output import WIDE, local, number, safe, span, table

    wide = width >= WIDE
    rows = []
    for circuit in circuits:
        order = circuit.order
        rare = (
            local(circuit.changed_at),
            "-" if order is None else f"{safe(order.actor)}, {local(order.at)}",
            safe(order.reason) if order is not None and order.reason else "-",
        )
        rows.append(
            (
                safe(circuit.type_key),
                _WORDS[circuit.state.name] + (" (forced)" if order is not None else ""),
                f"{circuit.open}/{circuit.half_open}/{circuit.workers}",
                number(circuit.failures),
                span(circuit.next_probe_ms),
                safe(circuit.last_error or "-"),
                *(rare if wide else ()),
            )
        )
    more = ("since", "~forced by", "~why") if wide else ()
    return table(("~type", "state", ">open/half/workers", ">failures", ">next try", "~last error", *more), rows)
