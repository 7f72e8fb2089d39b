"""Loads `sql/embedded/<Operation>.sql`: one file holds the named statements of one operation."""

from chokaq.store import sqlfiles

_HEADING = "-- name:"


def load(operation: str) -> dict[str, str]:
    """The statements of an operation by name, without comment lines.

    Keep them in module constants: sqlite3 finds a prepared statement by its text. Raises ValueError for SQL that stands before
    the first heading or for a name given twice.
    """
    found: dict[str, list[str]] = {}
    name: str | None = None
    for line in sqlfiles.read("embedded", operation).splitlines():
        if line.startswith(_HEADING):
            name = line.removeprefix(_HEADING).strip()
            if name in found:
                raise ValueError(f"sql/embedded/{operation}.sql names two statements {name!r}")
            found[name] = []
        elif line.strip() and not line.lstrip().startswith("--"):
            if name is None:
                raise ValueError(f"sql/embedded/{operation}.sql: a statement before the first '{_HEADING}' heading")
            found[name].append(line)
    return {name: "\n".join(lines).rstrip().removesuffix(";") for name, lines in found.items()}
