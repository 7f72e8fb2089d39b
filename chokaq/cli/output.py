"""What commands print: JSON with UTC times, tables with local times and human ages."""

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from chokaq.lifecycle.states import FailureReason, JobStatus

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 110
"""Columns from which tables show more."""
PIPED_WIDTH = 200
"""A table that is not on a terminal is not cut."""


def plain(value: Any) -> Any:
    """A value as JSON holds it: states by name, times in UTC, structs as objects."""
    match value:
        case JobStatus() | FailureReason():
            return value.label
        case Enum():
            return value.name.lower()
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case msgspec.Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set():
            return [plain(item) for item in value]
        case os.PathLike():
            return os.fspath(value)
        case _:
            return value


def with_places(listed: Iterable[Any], places: Sequence[str] | None) -> list[Any]:
    """What is listed, as JSON holds it, each with the name of its database; `places` None: there is only one."""
    found = [plain(one) for one in listed]
    return found if places is None else [{"database": name, **one} for name, one in zip(places, found, strict=True)]


def embed(text: str | None) -> Any:
    """JSON text as a part of a JSON answer, exactly as it is stored."""
    return None if text is None else orjson.Fragment(text)


def print_json(value: Any) -> None:
    """One JSON document on stdout, on one line."""
    sys.stdout.write(orjson.dumps(plain(value)).decode() + "\n")
    sys.stdout.flush()


def console() -> "Console":
    """A console on stdout: as wide as the terminal, or wide enough for everything when there is none."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> "Table":
    """A table of cells with markup. `>name` is aligned to the right; only a `~name` column is cut when room is short."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def unwrapped(cell: str) -> Text:
        text = Text.from_markup(cell, overflow="ellipsis")
        text.no_wrap = True
        return text

    cells = list(rows)
    made = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1), show_edge=False
    )
    for index, column in enumerate(columns):
        name, elastic = column.lstrip(">~"), column.startswith("~")
        widest = max([len(name), *(Text.from_markup(row[index]).cell_len for row in cells)])
        made.add_column(
            name,
            justify="right" if column.startswith(">") else "left",
            # Only a column that may wrap is made narrower; its cells forbid it themselves, so they are cut instead.
            no_wrap=not elastic,
            overflow="ellipsis",
            min_width=min(len(name), 4) if elastic else widest,
        )
    for row in cells:
        made.add_row(*(unwrapped(cell) for cell in row))
    return made


def number(value: int | None) -> str:
    """A count with separators; a dash for none, nothing loud for zero."""
    return "-" if value is None else f"{value:,}"


def span(milliseconds: float | None) -> str:
    """A duration in its two largest units: `850ms`, `4.2s`, `5m 12s`, `3d 4h`."""
    if milliseconds is None:
        return "-"
    if milliseconds < 0:
        return f"-{span(-milliseconds)}"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f}ms"
    if milliseconds < 9_950:
        return f"{milliseconds / 1_000:.1f}s"
    rest = round(milliseconds / 1_000)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def age(instant: datetime | None, now: datetime) -> str:
    """How long ago, or how far ahead, an instant is: `5m 12s ago`, `in 2h`."""
    if instant is None:
        return "-"
    passed = (now - instant).total_seconds() * 1_000
    return f"{span(passed)} ago" if passed >= 0 else f"in {span(-passed)}"


def local(instant: datetime | None) -> str:
    """An instant in the local time zone, with the zone."""
    return "-" if instant is None else instant.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def limit(milliseconds: int | None) -> str:
    """A timeout as it is written in YAML; a dash for none."""
    from chokaq.config.durations import format_duration

    return "-" if milliseconds is None else format_duration(milliseconds / 1_000)


_COLOURS = {
    JobStatus.PENDING: "cyan",
    JobStatus.FETCHED: "blue",
    JobStatus.PROCESSING: "yellow",
    JobStatus.SUCCEEDED: "green",
    JobStatus.FAILED: "red",
    JobStatus.CANCELLED: "magenta",
    JobStatus.ZOMBIE: "red",
    JobStatus.DROPPED: "bright_black",
}


def state(status: JobStatus) -> str:
    """A state by name, coloured."""
    return f"[{_COLOURS[status]}]{status.label}[/]"


def safe(text: object) -> str:
    """Text from the database as a table shows it: no markup, no control characters."""
    from rich.markup import escape

    return escape("".join(sign if sign.isprintable() else "\ufffd" for sign in str(text)))
