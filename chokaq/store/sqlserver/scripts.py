"""What the package brings for a SQL Server: the numbered schema files, the procedures, the grants, the tuning options."""

import re
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from chokaq.store import sqlfiles, versions
from chokaq.store.sqlserver.rewrite import batches, renamed, without_create_or_alter

LEDGER = "000_ledger"
GRANTS = "grants"
TUNING = "tuning"
_NUMBERED = re.compile(r"(\d{3})_\w+\Z")


class Script(NamedTuple):
    """One SQL file."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the file's text, before any rewriting."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def version(self) -> int:
        """The number of a numbered file."""
        found = _NUMBERED.match(self.name)
        if found is None:
            raise ValueError(f"{self.name} is not a numbered schema file")
        return int(found[1])

    def batches(self, schema: str, *, create_or_alter: bool) -> list[str]:
        """What to run, one after the other, for a schema name."""
        parts = batches(renamed(self.text, schema))
        if create_or_alter:
            return parts
        return [piece for part in parts for piece in without_create_or_alter(part)]


@cache
def ledger() -> Script:
    """The tables that remember what was applied."""
    return Script(LEDGER, sqlfiles.read("schema", LEDGER))


@cache
def migrations() -> list[Script]:
    """The numbered files from 001 on, in order. Immutable once released."""
    return [
        Script(name, sqlfiles.read("schema", name))
        for name in sqlfiles.names("schema")
        if _NUMBERED.match(name) and name != LEDGER
    ]


@cache
def procedures() -> list[Script]:
    """The procedures, by name."""
    return [Script(name, sqlfiles.read("procedures", name)) for name in sqlfiles.names("procedures")]


@cache
def grants() -> Script:
    """What the roles may execute; applied last."""
    return Script(GRANTS, sqlfiles.read("schema", GRANTS))


@cache
def tuning() -> Script:
    """Options that only SQL Server knows."""
    return Script(TUNING, sqlfiles.read("schema", TUNING))


def latest() -> int:
    """The version this program was written for: the number of the last schema file."""
    return max(script.version for script in migrations())


def oldest() -> int:
    """Programs from this version on can live with every schema file at hand."""
    return max(versions.serves(script.text, script.version) for script in migrations())


def rerunnable(*, tuned: bool) -> list[Script]:
    """What is applied again whenever its text changed, in order."""
    return [*([tuning()] if tuned else []), *procedures(), grants()]
