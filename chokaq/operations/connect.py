"""The way from settings to a store and a session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chokaq.store.doorbell import Doorbell
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store


def find_store(options: DatabaseSettings) -> Store:
    """The store these options name; opens no connection. Raises StoreMisconfigured."""
    return open_store(options)


def doorbell(store: Store) -> Callable[[str], None]:
    """Wakes an idle worker of a queue on this host, if there is one. Never blocks, never raises."""
    return Doorbell(store.identity).ring


@contextmanager
def connected(options: DatabaseSettings) -> Iterator[tuple[Store, Session]]:
    """A store and one open session, closed at the end. Raises StoreUnavailable, StoreMisconfigured or SchemaMismatch."""
    store = open_store(options)
    session = store.session()
    try:
        yield store, session
    finally:
        session.close()
