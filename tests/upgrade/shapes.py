"""What a caller sees of a procedure, read from its text: parameters, and the columns of the result sets."""

import re

import msgspec

_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(
    r"@(\w+)\s+([a-z0-9]+(?:\((?:\d+|max)(?:,\s*\d+)?\))?)\s*(?:=\s*([^,]+?))?\s*(?:,|\Z)", re.IGNORECASE
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|@?@?\w+|[(),;=]|\S")
_STARTS = {"SELECT", "INSERT", "UPDATE", "DELETE", "SET", "DECLARE", "IF", "ELSE", "WHILE", "BEGIN", "END", "RETURN", "THROW",
           "BREAK", "COMMIT", "ROLLBACK", "SAVE"}  # fmt: skip
"""Words with which a statement, or a branch in which one stands, begins."""


class Parameter(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One parameter of a procedure."""

    name: str
    type: str
    default: str | None = None
    """None: every caller has to give it."""


class Shape(msgspec.Struct, frozen=True):
    """One procedure."""

    parameters: list[Parameter]
    results: list[list[str]]
    """Column names of the SELECTs that answer, as they stand in the text; equal ones once. `EXEC Name`: those of that procedure."""


def shape(text: str) -> Shape:
    """Of a script in sql/procedures."""
    plain = _COMMENT.sub("", text)
    head, body = plain.split("CREATE OR ALTER PROCEDURE", 1)[1].split("\nAS\n", 1)
    declared = head.partition("\n")[2]
    parameters = [Parameter(name, kind.lower(), default) for name, kind, default in _parameters(declared)]
    found: list[list[str]] = []
    for columns in _answers(_TOKEN.findall(body)):
        if columns not in found:
            found.append(columns)
    return Shape(parameters, found)


def _parameters(head: str) -> list[tuple[str, str, str | None]]:
    found = [(name, kind, default or None) for name, kind, default in _PARAMETER.findall(head)]
    assert len(found) == head.count("@"), f"not understood: {head}"
    return found


def _answers(tokens: list[str]) -> list[list[str]]:
    """The select lists of the statements that send rows to the caller."""
    answers, place, statement = [], 0, ""
    while place < len(tokens):
        token = tokens[place].upper()
        if token == "(":
            place = _closing(tokens, place) + 1
            continue
        if token == "EXEC" and tokens[place + 1 : place + 3] == ["chokaq", "."]:
            answers.append([f"EXEC {tokens[place + 3]}"])
        # The SELECT of INSERT … SELECT, of UNION and of a cursor's begin belongs to the statement it stands in.
        feeds = token == "SELECT" and (statement == "INSERT" or tokens[place - 1].upper() in {"ALL", "UNION"})
        if token == ";":
            statement = ""
        elif token in _STARTS and not feeds:
            # UPDATE … SET and DELETE … END of CASE are no statements of their own.
            if not (token == "SET" and statement == "UPDATE") and not (
                token == "END" and statement in {"SELECT", "UPDATE"}
            ):
                statement = token
            if token == "SELECT" and statement == "SELECT":
                columns, place = _select_list(tokens, place + 1)
                if columns is not None:
                    answers.append(columns)
                continue
        place += 1
    return answers


def _select_list(tokens: list[str], place: int) -> tuple[list[str] | None, int]:
    """The column names, None for a SELECT into variables; and where the list ends."""
    if tokens[place].upper() == "TOP":
        place = _closing(tokens, place + 1) + 1
    if tokens[place].upper() == "DISTINCT":
        place += 1
    if tokens[place].startswith("@") and tokens[place + 1] == "=":
        return None, place
    names, last, cases = [], "", 0
    while place < len(tokens):
        token = tokens[place].upper()
        if token == "(":
            place = _closing(tokens, place) + 1
            continue
        if token == "CASE":
            cases += 1
        elif token == "END" and cases:
            cases -= 1
        elif not cases and (token in {"FROM", ";", "UNION", "END", "WHERE", "OPTION"}):
            break
        elif not cases and token == ",":
            names.append(last)
        last = tokens[place]
        place += 1
    return [*names, last], place


def _closing(tokens: list[str], place: int) -> int:
    """Where the parenthesis that opens at `place` is closed."""
    depth = 0
    for index in range(place, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index], 0)
        if depth == 0:
            return index
    raise AssertionError("an open parenthesis")
