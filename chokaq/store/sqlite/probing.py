"""What probes ask: ReadHealth."""

from collections.abc import Sequence

from chokaq.store.names import check_name
from chokaq.store.probing import MAX_QUEUES, QueueLag, StoreHealth
from chokaq.store.sqlite import schema
from chokaq.store.sqlite.clock import now_ms
from chokaq.store.sqlite.connection import Connected, document
from chokaq.store.sqlite.statements import load
from chokaq.store.versions import is_served

_HEALTH = load("ReadHealth")


class ProbingOperations(Connected):
    """See `chokaq.store.probing.ProbingSession`."""

    def read_health(self, queues: Sequence[str]) -> StoreHealth:
        """Version and lag."""
        names = list(dict.fromkeys(queues))[:MAX_QUEUES]
        for name in names:
            check_name("queue", name)
        now = now_ms()
        with self._reading() as connection:
            standing = schema.installed(connection)
        found = []
        for name, paused, active in self._select(_HEALTH["queues"], {"queues": document(names)}):
            [(due,)] = self._select(_HEALTH["oldest"], {"queue": name, "now": now})
            lag = None if due is None else max(0, now - due)
            found.append(QueueLag(name=name, paused=bool(paused), active=bool(active), oldest_due_ms=lag))
        return StoreHealth(
            version=None if standing is None else standing.version,
            needed=schema.latest(),
            fits=is_served(standing, schema.latest()),
            queues=found,
        )
