"""`chokaq status`: everything at a glance, once or live."""

import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption

if TYPE_CHECKING:
    from chokaq.operations import Status
    from chokaq.store.errors import StoreError


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("status")(status)


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Stay, and show it anew until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 1.0,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show queues, workers and what is wrong. Exit code 1 when something is, e.g. a queue with jobs and no worker."""
    common = Common.of(ctx, config, database, as_json)
    if watch:
        _watch(common, interval)
        return
    found = _read(common)
    from chokaq.cli.output import console, print_json

    if common.as_json:
        print_json(found.as_json())
    else:
        out = console()
        out.print(_render(found, out.width))
    if found.problems:
        raise typer.Exit(Exit.PROBLEM)


@dataclass(frozen=True)
class _Found:
    """What was read, of one database or of several."""

    statuses: "dict[str, Status]"
    errors: "dict[str, StoreError]"
    together: list[str]
    """What is wrong beyond what each status says."""
    several: bool

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong."""
        return [*self.together, *self._told("problems")]

    @property
    def notes(self) -> list[str]:
        """What somebody decided and may have forgotten."""
        return self._told("notes")

    def placed(self, what: str) -> list[tuple[str, Any]]:
        """The queues, workers or circuits, each with its database."""
        return [(name, member) for name, status in self.statuses.items() for member in getattr(status, what)]

    def as_json(self) -> Any:
        """The status of the only database; or all by name, and what is wrong in any."""
        if not self.several:
            return next(iter(self.statuses.values()))
        away = {name: {"unreachable": str(error)} for name, error in self.errors.items()}
        return {"databases": {**self.statuses, **away}, "problems": self.problems}

    def _told(self, what: str) -> list[str]:
        return [f"{name}: {told}" if self.several else told for name, told in self.placed(what)]


def _read(common: Common) -> _Found:
    from chokaq.operations.status import read_statuses

    with common.databases() as databases:
        statuses, errors, together = read_statuses(databases, common.settings())
        return _Found(statuses, errors, together, databases.several)


def _watch(common: Common, interval: float) -> None:
    """Show it anew until Ctrl-C; a store that is away for a while is shown as such. With --json: one line per look."""
    from contextlib import suppress

    from chokaq.cli.output import console, print_json

    stop = threading.Event()

    def end(*_: object) -> None:
        # The first asks; a second one does not wait for a store that answers late. (An interrupt may get lost in a callback.)
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, end)
    try:
        with suppress(KeyboardInterrupt):
            if common.as_json:
                while not stop.is_set():
                    found = _look(common)
                    print_json(found if isinstance(found, dict) else found.as_json())
                    stop.wait(interval)
                return
            from rich.live import Live

            out = console()
            with Live(console=out, auto_refresh=False, screen=out.is_terminal) as live:
                while not stop.is_set():
                    found = _look(common)
                    live.update(
                        f"[red]{found['unreachable']}[/]" if isinstance(found, dict) else _render(found, out.width),
                        refresh=True,
                    )
                    stop.wait(interval)
    finally:
        signal.signal(signal.SIGINT, before)


def _look(common: Common) -> "_Found | dict[str, str]":
    from chokaq.observe.redact import redact_text
    from chokaq.store.errors import StoreUnavailable

    try:
        return _read(common)
    except StoreUnavailable as error:
        return {"unreachable": redact_text(str(error))}


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _render(found: _Found, width: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    from chokaq.cli.output import WIDE, number, safe, span, table
    from chokaq.cli.queues import mode

    wide = width >= WIDE
    rows = []
    queues, workers, circuits = (found.placed(what) for what in ("queues", "workers", "circuits"))
    if found.several:
        queues.sort(key=lambda pair: pair[1].queue.name)
    for name, entry in queues:
        view, rates = entry.queue, entry.last_minute
        rare = (number(rates.retried), number(view.succeeded_total), number(view.failed_total))
        rows.append(
            (
                safe(view.name),
                *((name,) if found.several else ()),
                mode(view),
                number(view.pending),
                number(view.scheduled),
                number(view.fetched + view.processing),
                span(view.oldest_due_ms),
                number(view.live_workers),
                number(rates.succeeded),
                number(rates.failed),
                *(rare if wide else ()),
            )
        )
    more = (">retried/min", ">ok ever", ">failed ever") if wide else ()
    place = ("database",) if found.several else ()
    columns = ("~queue", *place, "mode", ">due", ">later", ">run", ">oldest", ">live", ">ok/min", ">failed/min", *more)
    listing = table(columns, rows)
    hosts = {worker.host for _, worker in workers}
    children = sum(1 for _, worker in workers if worker.queue)
    running = sum(worker.figures.running for _, worker in workers)
    parts: list[Any] = [listing if queues else Text("No queues yet: none was served, set, or given a job.")]
    if circuits:
        from chokaq.cli.circuits import circuit_table

        places = [name for name, _ in circuits] if found.several else None
        parts += [Text(), circuit_table([circuit for _, circuit in circuits], width, places)]
    parts.append(
        Text(f"\n{_count(children, 'worker')} on {_count(len(hosts), 'host')}, {_count(running, 'job')} running.")
    )
    parts += [Text(f"! {problem}", style="red") for problem in found.problems]
    parts += [Text(f"- {note}", style="yellow") for note in found.notes]
    if not found.problems:
        parts.append(Text("Nothing is wrong.", style="green"))
    return Group(*parts)
