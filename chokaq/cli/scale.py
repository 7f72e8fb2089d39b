"""`chokaq queues scale`: how many replicas a queue wants."""

from enum import StrEnum
from typing import Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption
from chokaq.cli.reading import seconds


class UnitChoice(StrEnum):
    """What is counted."""

    REPLICA = "replica"
    PROCESS = "process"


_PLURALS = {"replica": "replicas", "process": "processes"}


def scale(
    ctx: typer.Context,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")],
    least: Annotated[int, typer.Option("--min", help="Never recommend fewer.")] = 0,
    most: Annotated[int, typer.Option("--max", help="Never recommend more (at most 10,000).")] = 100,
    target_lag: Annotated[
        str, typer.Option(help="How long a due job may wait: only then more are recommended.")
    ] = "5s",
    catch_up: Annotated[str, typer.Option(help="Within which time what waits is to be worked off.")] = "1m",
    handlers: Annotated[
        int, typer.Option(help="Handlers one replica runs at a time for the queue; 0: as the live ones tell.")
    ] = 0,
    busy: Annotated[int, typer.Option(help="How busy handlers should be after a rise, in percent.")] = 80,
    idle: Annotated[int, typer.Option(help="How busy they should be after a fall, in percent.")] = 50,
    unit: Annotated[
        UnitChoice, typer.Option(help="replica: whatever one host name runs; process: one child.")
    ] = UnitChoice.REPLICA,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recommend how many replicas a queue wants, from lag and running work against capacity. Changes nothing."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, number, print_json, span, table
    from chokaq.lifecycle.scale import ScaleBounds
    from chokaq.operations.scaling import explain_scale, recommend_scale

    bounds = ScaleBounds(
        min_replicas=least,
        max_replicas=most,
        target_lag_ms=round(seconds("--target-lag", target_lag) * 1_000),
        catch_up_ms=round(seconds("--catch-up", catch_up) * 1_000),
        replica_handlers=handlers,
        fleet_cap=common.settings().queue(queue).fleet_max_workers,
        busy_percent=busy,
        idle_percent=idle,
        unit=unit.value,
    )
    with common.databases() as databases:
        opened = databases.of_queue(queue)
        view = databases.run(opened.name, lambda opened: recommend_scale(opened.session, queue, bounds))
    if common.as_json:
        print_json(view)
        return
    out = console()
    out.print(f"{queue} wants {_count(view.replicas, view.unit)}; {number(view.live)} live.", markup=False)
    out.print(explain_scale(view), markup=False)
    row = (
        number(view.due),
        span(view.oldest_due_ms),
        number(view.buffered),
        number(view.running),
        span(view.mean_run_ms),
        number(view.replica_handlers),
        f"{view.low:,} … {view.high:,}",
    )
    out.print(table((">due", ">oldest", ">buffered", ">running", ">mean run", ">handlers each", ">room"), [row]))


def _count(amount: int, unit: str) -> str:
    return f"{amount:,} {unit if amount == 1 else _PLURALS[unit]}"
