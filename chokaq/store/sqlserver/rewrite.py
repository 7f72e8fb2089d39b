"""How the SQL files are fitted to a database before they run: three rewritings, and nothing else."""

import re

QUALIFIER = "chokaq"
_BATCH = re.compile(r"(?im)^[ \t]*GO[ \t]*$\n?")
_NAMED = re.compile(rf"\b{QUALIFIER}(?=[._])")
_CREATE_OR_ALTER = re.compile(r"(?im)^CREATE OR ALTER (PROCEDURE|VIEW|FUNCTION) (\S+)")


def renamed(text: str, schema: str) -> str:
    """The text for another schema: the qualifier `chokaq.` and the role prefix `chokaq_`."""
    if schema == QUALIFIER:
        return text
    return _NAMED.sub(schema, text)


def batches(text: str) -> list[str]:
    """The batches of a script: what stands between its GO lines."""
    return [batch.strip() for batch in _BATCH.split(text) if batch.strip()]


def without_create_or_alter(batch: str) -> list[str]:
    """For an engine that has no CREATE OR ALTER: DROP IF EXISTS, then CREATE. (The grants are applied after it.)"""
    found = _CREATE_OR_ALTER.search(batch)
    if found is None:
        return [batch]
    kind, name = found.groups()
    return [f"DROP {kind} IF EXISTS {name}", _CREATE_OR_ALTER.sub(r"CREATE \1 \2", batch, count=1)]


def normalised(definition: str) -> str:
    """A definition as it compares: from CREATE on; white space and the words OR ALTER do not count."""
    found = re.search(r"(?im)^\s*CREATE\s+(OR\s+ALTER\s+)?(?=PROCEDURE|VIEW|FUNCTION)", definition)
    return " ".join((definition if found is None else definition[found.end() :]).split())
