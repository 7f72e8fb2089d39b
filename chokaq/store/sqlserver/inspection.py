"""Compares the live tables, indexes and procedures with the package. Reads only the catalog.

Names compare without case: SQL Server keeps them as written, Babelfish lower-cases those of procedures, views and indexes.
"""

import re
from contextlib import closing
from typing import Any

from chokaq.store.sqlserver.rewrite import normalised
from chokaq.store.sqlserver.scripts import ledger, migrations, procedures

_TABLE = re.compile(r"CREATE TABLE chokaq\.(\w+) \(\n(.*?)\n\);", re.DOTALL)
_ADDED = re.compile(r"ALTER TABLE chokaq\.(\w+) ADD (\w+) (\w+)")
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+) ON chokaq\.(\w+)")
_COLUMN = re.compile(r"\s*(\w+)\s+(\w+)")


def is_babelfish(connection: Any) -> bool:
    """Whether the engine is Babelfish, which speaks T-SQL with some gaps."""
    rows = _rows(connection, "SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS varchar(50)) AS Version")
    return bool(rows[0][0])


def has_table(connection: Any, schema: str, table: str) -> bool:
    """Whether a table of that name exists."""
    sql = "SELECT 1 AS Found FROM information_schema.tables WHERE table_schema = ? AND table_name = ?"
    return bool(_rows(connection, sql, schema, table))


def expected_tables() -> dict[str, dict[str, str]]:
    """Table → column → type, as the schema files make them."""
    found: dict[str, dict[str, str]] = {}
    for script in (ledger(), *migrations()):
        text = re.sub(r"--[^\n]*", "", script.text)
        for table, body in _TABLE.findall(text):
            columns = (_COLUMN.match(part) for part in _parts(body))
            found[table] = {column[1]: column[2].lower() for column in columns if column and column[1] != "CONSTRAINT"}
        for table, name, kind in _ADDED.findall(text):
            found[table][name] = kind.lower()
    return found


def expected_indexes() -> dict[str, list[str]]:
    """Table → names of its indexes (the primary key not counted)."""
    found: dict[str, list[str]] = {}
    for script in migrations():
        for index, table in _INDEX.findall(script.text):
            found.setdefault(table, []).append(index)
    return found


def drift(connection: Any, schema: str) -> list[str]:
    """What differs, one sentence each."""
    return [*_tables(connection, schema), *_indexes(connection, schema), *_procedures(connection, schema)]


def _tables(connection: Any, schema: str) -> list[str]:
    live: dict[str, dict[str, str]] = {}
    sql = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = ?"
    for table, column, kind in _rows(connection, sql, schema):
        live.setdefault(table.lower(), {})[column] = str(kind).lower()
    problems = []
    for table, columns in expected_tables().items():
        present = live.get(table.lower())
        if present is None:
            problems.append(f"Table {table} is missing.")
            continue
        for column, kind in columns.items():
            if column not in present:
                problems.append(f"Table {table} has no column {column}.")
            elif present[column] != kind:
                problems.append(f"Column {table}.{column} is {present[column]} instead of {kind}.")
        problems += [f"Table {table} has the unknown column {name}." for name in present if name not in columns]
    if "jobs" not in live:
        problems.append("View Jobs is missing.")
    return problems


def _indexes(connection: Any, schema: str) -> list[str]:
    """By name; an engine that mangles names keeps ours at the beginning, in lower case."""
    live: dict[str, list[str]] = {}
    sql = (
        "SELECT o.name, i.name FROM sys.indexes i JOIN sys.objects o ON o.object_id = i.object_id "
        "WHERE o.schema_id = SCHEMA_ID(?) AND i.name IS NOT NULL"
    )
    for table, index in _rows(connection, sql, schema):
        live.setdefault(table.lower(), []).append(index.lower())
    return [
        f"Index {index} of table {table} is missing."
        for table, indexes in expected_indexes().items()
        for index in indexes
        if not any(name.startswith(index.lower()) for name in live.get(table.lower(), []))
    ]


def _procedures(connection: Any, schema: str) -> list[str]:
    sql = (
        "SELECT o.name, m.definition, m.uses_quoted_identifier, m.uses_ansi_nulls FROM sys.objects o "
        "LEFT JOIN sys.sql_modules m ON m.object_id = o.object_id WHERE o.schema_id = SCHEMA_ID(?) AND o.type = 'P'"
    )
    live = {row[0].lower(): row for row in _rows(connection, sql, schema)}
    problems = []
    for script in procedures():
        row = live.get(script.name.lower())
        if row is None:
            problems.append(f"Procedure {script.name} is missing.")
            continue
        _, definition, quoted, nulls = row
        if not (quoted and nulls):
            problems.append(
                f"Procedure {script.name} was made without QUOTED_IDENTIFIER and ANSI_NULLS: its filtered indexes cannot be used."
            )
        *_, text = script.batches(schema, create_or_alter=True)
        # No definition: the login may not see it, or the engine does not keep it.
        if definition and normalised(definition) != normalised(text):
            problems.append(f"Procedure {script.name} has another text than the package.")
    return problems


def _parts(body: str) -> list[str]:
    """The elements of a CREATE TABLE, divided at the commas that stand in no parentheses."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(body):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(body[start:place])
            start = place + 1
    return [*parts, body[start:]]


def _rows(connection: Any, sql: str, *args: Any) -> list[Any]:
    with closing(connection.cursor()) as cursor:
        found: list[Any] = cursor.execute(sql, *args).fetchall()
        return found
