"""What a bench says: tables for people, and one JSON object on the last line for machines."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from bench.figures import rounded


def say(text: str = "") -> None:
    """Text for people, before the JSON line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """What is going on just now."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def answer(result: Mapping[str, Any]) -> None:
    """The result: one JSON object on one line of stdout."""
    sys.stdout.write(orjson.dumps(tidy(result), option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
    sys.stdout.flush()


def tidy(value: Any) -> Any:
    """The same with all floats rounded to what a measurement can tell."""
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, Mapping):
        return {key: tidy(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(part) for part in value]
    return value


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; columns are aligned so that it also reads in a terminal."""
    texts = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in texts
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
