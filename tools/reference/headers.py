"""Reads the T-SQL files: what the comment over a procedure says, its parameters, the tables, who may execute what."""

import re
from pathlib import Path
from typing import NamedTuple

SQL = Path(__file__).resolve().parents[2] / "sql"
_LABEL = re.compile(r"^(Called by|Example|Formula|Parameters|Results?(?:, [^:]+)?|Errors|Table order): ?(.*)$")
_PARAMETER = re.compile(r"^ {2}(@\w+) {2,}(.*)$")
_SIGNATURE = re.compile(r"^CREATE OR ALTER PROCEDURE chokaq\.(\w+)\s*\n(.*?)^AS$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"((?:^--[^\n]*\n)+)CREATE (?:TABLE|VIEW) chokaq\.(\w+)", re.MULTILINE)
_GRANT = re.compile(r"GRANT EXECUTE ON chokaq\.(\w+) TO chokaq_(\w+);")


class HeaderError(ValueError):
    """A procedure's comment leaves out what every one has to say."""


class Paragraph(NamedTuple):
    """`Called by: …` and its like."""

    label: str
    lines: list[str]
    """The text, one entry per line of the file; the first one may be empty."""


class Procedure(NamedTuple):
    """One procedure."""

    name: str
    purpose: str
    parameters: dict[str, str]
    """Name → type, in order."""
    meanings: dict[str, str]
    """Name → meaning, of those that have a line of their own."""
    paragraphs: list[Paragraph]


def procedures() -> list[Procedure]:
    """All of them, by name. Raises HeaderError."""
    return [read(file.stem, file.read_text(encoding="utf-8")) for file in sorted((SQL / "procedures").glob("*.sql"))]


def read(name: str, text: str) -> Procedure:
    """One file's procedure. Raises HeaderError."""
    signature = _SIGNATURE.search(text)
    if signature is None or signature[1] != name:
        raise HeaderError(f"{name}: no procedure of that name is created in its file")
    comment = re.search(r"((?:^--[^\n]*\n)+)\Z", text[: signature.start()], re.MULTILINE)
    lines = [] if comment is None else [line.removeprefix("--").removeprefix(" ") for line in comment[1].splitlines()]
    if not lines or not lines[0].startswith(f"{name}: "):
        raise HeaderError(f"{name}: the comment above the procedure must begin with `-- {name}: `")
    lines[0] = lines[0].removeprefix(f"{name}: ")
    paragraphs = [Paragraph("", [])]
    for line in lines:
        if match := _LABEL.match(line):
            paragraphs.append(Paragraph(match[1], [match[2]]))
        else:
            paragraphs[-1].lines.append(line)
    found = {paragraph.label for paragraph in paragraphs}
    for needed in ("Called by", "Table order"):
        if needed not in found:
            raise HeaderError(f"{name}: its comment does not say `{needed}: …`")
    parameters = dict(re.findall(r"(@\w+) +([a-z0-9]+(?:\([^)]*\))?)", signature[2]))
    meanings: dict[str, str] = {}
    for paragraph in paragraphs:
        if paragraph.label == "Parameters":
            meanings = _meanings(paragraph.lines)
    purpose = " ".join(" ".join(paragraphs[0].lines).split())
    return Procedure(name, purpose, parameters, meanings, paragraphs[1:])


def _meanings(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    last = None
    for line in lines:
        if match := _PARAMETER.match(line):
            last = match[1]
            found[last] = match[2].strip()
        elif last is not None:
            found[last] += " " + line.strip()
    return found


def tables() -> dict[str, str]:
    """Tables and the view with what the comment above each one says, in the order they are created."""
    found: dict[str, str] = {}
    for file in sorted((SQL / "schema").glob("[0-9]*.sql")):
        for comment, name in _TABLE.findall(file.read_text(encoding="utf-8")):
            found[name] = " ".join(line.removeprefix("--").strip() for line in comment.splitlines())
    return found


def grants() -> dict[str, list[str]]:
    """Procedure → the roles that may execute it."""
    found: dict[str, list[str]] = {}
    for name, role in _GRANT.findall((SQL / "schema" / "grants.sql").read_text(encoding="utf-8")):
        found.setdefault(name, []).append(role)
    return found
