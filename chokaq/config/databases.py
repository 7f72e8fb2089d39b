"""Reading where the jobs live: `database:`, or several under `databases:`."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any

from chokaq.config.document import Path as Place
from chokaq.config.document import path_text
from chokaq.config.errors import Problem
from chokaq.config.reader import Reader, is_broken
from chokaq.config.rules import is_database_name
from chokaq.config.sections import DATABASE, DATABASE_URL


def read_database(reader: Reader, place: Place, value: object) -> dict[str, Any]:
    """One database: a URL, or a mapping with more options. Nothing stands for an empty mapping."""
    if value is None or isinstance(value, dict):
        return reader.section(place, value, DATABASE)
    url = reader.option(place, value, DATABASE["url"])
    if is_broken(url):
        return {}
    reader.origins[f"{path_text(place)}.url"] = reader.origins.pop(path_text(place))
    return {"url": url}


def read_databases(reader: Reader, value: object) -> dict[str, dict[str, Any]]:
    """The databases by name, each with a URL; one that is broken has the URL of nothing, and was complained of."""
    found: dict[str, dict[str, Any]] = {}
    for name, raw in reader.mapping(("databases",), value).items():
        place = ("databases", name)
        if not is_database_name(name):
            reader.complain(place, "a database's name is 1 to 40 letters, digits, `_` or `-`, the first a letter")
            continue
        known = len(reader.problems)
        one = read_database(reader, place, raw)
        if "url" not in one and len(reader.problems) == known:
            reader.complain(place, "needs a URL: sqlite:///path or mssql://user:password@host/database")
        found[name] = {"url": f"sqlite:///{name}", **one}
    return found


def one_or_several(reader: Reader, environ: Mapping[str, str]) -> dict[str, str]:
    """With `databases:` nothing else may name a database; the environment without the variable that would.

    The file may use $CHOKAQ_DATABASE_URL itself (`main: ${CHOKAQ_DATABASE_URL}`): that is no second word on the matter.
    """
    if "database" in reader.document.tree:
        reader.complain(
            ("database",),
            "give either `database:` or `databases:`, not both: move this one under `databases:`, as main",
        )
    used = any(re.match(rf"\$\{{{DATABASE_URL}\b", held) for held in reader.document.held)
    if environ.get(DATABASE_URL) and not used:
        message = (
            "names one database, and the file has several under `databases:`: unset it, or say in the file which of them it is "
            f"(`main: ${{{DATABASE_URL}}}`)"
        )
        reader.problems.append(Problem(f"${DATABASE_URL}", message))
    return {name: value for name, value in environ.items() if name != DATABASE_URL}


def read_place(reader: Reader, queue: str, name: str | None, known: Collection[str]) -> str | None:
    """The database that a queue names, when there is one of that name; else None, and it was complained of."""
    if name is None or name in known:
        return name
    if not known:
        told = "there is no `databases:`, only one database: leave this out, or name the databases there"
    else:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"`databases:` knows {', '.join(known)}"
        told = f"there is no database {name!r}; {hint}"
    reader.complain(("queues", queue, "database"), told)
    return None
