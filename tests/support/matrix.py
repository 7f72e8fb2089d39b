"""Which role may execute which procedure: as granted, and as docs/security.md tells it."""

import re

from chokaq.store import sqlfiles

from .processes import ROOT

ROLES = ("client", "worker", "operator", "reader")
PAGE = ROOT / "docs" / "security.md"
_ROW = re.compile(r"^\| `(\w+)` \| (yes|·) \| (yes|·) \| (yes|·) \| (yes|·) \|$", re.MULTILINE)


def granted() -> dict[str, set[str]]:
    """Procedure → roles, by the grants script."""
    found: dict[str, set[str]] = {name: set() for name in sqlfiles.names("procedures")}
    for name, role in re.findall(r"GRANT EXECUTE ON chokaq\.(\w+) TO chokaq_(\w+);", sqlfiles.read("schema", "grants")):
        found[name].add(role)
    return found


def documented() -> dict[str, set[str]]:
    """Procedure → roles, by the table for people."""
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {name: {role for role, word in zip(ROLES, words, strict=True) if word == "yes"} for name, *words in rows}
