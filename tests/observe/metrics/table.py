"""The table of docs/metrics.md, as the catalogue has it. `python -m tests.observe.metrics.table` writes it there."""

import re
from pathlib import Path

from chokaq.observe.metrics.catalogue import CATALOGUE, Instrument, Kind

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
BEGIN, END = "<!-- the catalogue: written by tests/observe/metrics/table.py -->", "<!-- end of the catalogue -->"


def table() -> str:
    """The whole table with its marks."""
    rows = [
        "| metric | kind | labels | counted by | meaning |",
        "|---|---|---|---|---|",
        *map(_row, CATALOGUE),
    ]
    return "\n".join([BEGIN, "", *rows, "", END])


def write(page: Path = PAGE) -> None:
    """Put the table of now in the place of the one before."""
    text = page.read_text(encoding="utf-8")
    fresh, count = re.subn(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table(), text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{page} needs the two marks of the catalogue once")
    page.write_text(fresh, encoding="utf-8")


def _row(one: Instrument) -> str:
    kind = f"{one.kind}, {one.unit}" if one.unit else str(one.kind)
    if one.kind is Kind.GAUGE and one.largest:
        kind += ", largest"
    labels = ", ".join(f"`{label}`" for label in one.labels)
    sources = ", ".join(one.sources)
    return f"| `{one.name}` | {kind} | {labels} | {sources} | {one.help} |"


if __name__ == "__main__":
    write()
