"""The catalogue of events: frozen, complete, and the same in the code, in the docs and in the reference's numbers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import chokaq
from chokaq.observe.events import EVENTS

PACKAGE = Path(chokaq.__file__).parent
DOCS = Path(__file__).parents[2] / "docs" / "logs.md"
METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
REFERENCE = {
    1000, 1001, 1002, 1003, 1004, 1010, 1011, 1012, 1013, 1014, 1015, 1016,
    2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, 2020, 2021, 2022, 2023, 2100, 2110,
    3000, 3001, 4000, 4001, 4002, 4003, 5000, 5001, 5002, 5003, 6000, 6001,
}  # fmt: skip
"""The numbers of the system that ours are compatible with."""


class Call(NamedTuple):
    """A place in the package that logs."""

    where: str
    level: str
    name: str | None
    """None: not a plain text."""


def calls(source: str, file: str) -> Iterator[Call]:
    """Every call of a log method on `log` or `_log`."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id in {"log", "_log"}:
            first = node.args[0] if node.args else None
            name = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
            level = "error" if node.func.attr == "exception" else node.func.attr
            yield Call(f"{file}:{node.lineno}", level, name)


def sources() -> Iterator[tuple[str, str]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        yield str(file.relative_to(PACKAGE)), file.read_text()


def logged() -> list[Call]:
    """Every place of the package that logs."""
    return [call for file, source in sources() for call in calls(source, file)]


def test_no_name_number_or_level_has_changed() -> None:
    """Add a line here for a new event; no line ever changes or goes."""
    frozen = (Path(__file__).parent / "events.txt").read_text().splitlines()
    assert [f"{event.number} {name} {event.level}" for name, event in EVENTS.items()] == frozen


def test_numbers_are_unique_and_stand_in_order() -> None:
    numbers = [event.number for event in EVENTS.values()]
    assert len(set(numbers)) == len(numbers)
    assert numbers == sorted(numbers)


def test_the_39_numbers_of_the_reference_are_all_here() -> None:
    assert len(REFERENCE) == 39
    assert {event.number for event in EVENTS.values()} >= REFERENCE


def test_every_event_that_is_logged_is_in_the_catalogue_at_its_level() -> None:
    wrong = [
        f"{call.where} logs {call.name!r} at {call.level}"
        for call in logged()
        if call.name not in EVENTS or EVENTS[call.name].level != call.level
    ]
    assert not wrong, "name each event by a plain text and list it in chokaq/observe/events.py: " + "; ".join(wrong)


def test_every_event_of_the_catalogue_is_logged_unless_it_says_why_not() -> None:
    names = {call.name for call in logged()}
    assert {name for name, event in EVENTS.items() if event.reserved is None} == names
    assert all(len(event.reserved) > 40 for event in EVENTS.values() if event.reserved is not None)


def test_nobody_logs_through_another_logger() -> None:
    """All loggers are `log` or `_log`, so that the scan above sees them; folding repeats a name it was given."""
    makers = {
        (file, line.strip())
        for file, source in sources()
        for line in source.splitlines()
        if "get_logger(" in line and not re.fullmatch(r'_?log = structlog\.get_logger\("chokaq"\)', line)
    }
    known = {"observe/folding.py", "observe/log.py"}
    assert {file for file, _ in makers} == known, makers


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('log.info("a", x=1)', ("info", "a")),
        ('_log.exception("b")', ("error", "b")),
        ("log.info(name)", ("info", None)),
        ('log.info(f"{x}_refused")', ("info", None)),
    ],
)
def test_the_scan_sees_every_form(source: str, found: tuple[str, str | None]) -> None:
    [call] = calls(source, "x.py")
    assert (call.level, call.name) == found


def test_the_docs_list_the_same_events() -> None:
    rows = re.findall(r"^\| (\d{4}) \| `(\w+)` \| (\w+) \| (.+?) \|$", DOCS.read_text(), re.MULTILINE)
    listed = [(int(number), name, level, meaning) for number, name, level, meaning in rows]
    assert listed == [
        (event.number, name, event.level if event.reserved is None else "reserved", event.reserved or event.meaning)
        for name, event in EVENTS.items()
    ]
