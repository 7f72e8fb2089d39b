"""Picks the store that a URL names."""

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from chokaq.store.url import SQLITE, DatabaseUrl


def open_store(options: DatabaseSettings, *, own_process: bool = False) -> Store:
    """The store of `options.url`; no connection is made. Raises StoreMisconfigured for a URL no store knows.

    `own_process`: the process is chokaq's own and this is its main thread, so the store may handle SIGURG: the embedded one then
    waits for its writers' lock in the calling thread. The store's module is imported here and not before: the embedded one must
    work without an ODBC library.
    """
    if DatabaseUrl.parse(options.url).scheme == SQLITE:
        from chokaq.store.sqlite import SqliteStore, interrupt

        if own_process:
            interrupt.allow()
        return SqliteStore(options)
    from chokaq.store.sqlserver import SqlServerStore

    return SqlServerStore(options)
