"""The database's tables and procedures: installing, comparing, scripting."""

import msgspec

from chokaq.store.protocol import Store


class SchemaState(msgspec.Struct, frozen=True):
    """The live schema beside the package's."""

    version: int | None
    """Of the live schema; None: nothing is installed."""
    drift: list[str]
    """One sentence per difference; empty: none."""


def apply_schema(store: Store) -> list[str]:
    """Bring the database to this program's version; names what was applied. Safe from many processes at once."""
    return store.apply_schema()


def check_schema(store: Store) -> SchemaState:
    """Compare the live schema and procedures with the package."""
    return SchemaState(store.schema_version(), store.check_schema())


def schema_script(store: Store) -> str:
    """Everything `apply_schema` would run, for a DBA."""
    return store.schema_script()


def schema_version(store: Store) -> int | None:
    """The version in the database's ledger; None: nothing is installed."""
    return store.schema_version()
