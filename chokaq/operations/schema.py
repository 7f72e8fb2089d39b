"""The database's tables and procedures: installing, comparing, scripting."""

import msgspec
import structlog

from chokaq.observe.levels import is_heard
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Store

_log = structlog.get_logger("chokaq")


class SchemaState(msgspec.Struct, frozen=True):
    """The live schema beside the package's."""

    version: int | None
    """Of the live schema; None: nothing is installed."""
    drift: list[str]
    """One sentence per difference; empty: none."""


def apply_schema(store: Store) -> list[str]:
    """Bring the database to this program's version; names what was applied. Safe from many processes at once."""
    heard = is_heard()
    if heard:
        _log.info("schema_apply_started", store=store.url)
    try:
        applied = store.apply_schema()
    except StoreError as error:
        if heard:
            _log.error("schema_apply_failed", store=store.url, error=str(error))
        raise
    if heard:
        _log.info("schema_applied", store=store.url, applied=applied)
    return applied


def check_schema(store: Store) -> SchemaState:
    """Compare the live schema and procedures with the package."""
    return SchemaState(store.schema_version(), store.check_schema())


def schema_script(store: Store) -> str:
    """Everything `apply_schema` would run, for a DBA."""
    return store.schema_script()


def schema_version(store: Store) -> int | None:
    """The version in the database's ledger; None: nothing is installed."""
    return store.schema_version()
