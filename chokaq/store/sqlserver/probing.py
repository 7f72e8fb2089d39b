"""What probes ask: ReadHealth."""

from collections.abc import Sequence

from chokaq.store.names import check_name
from chokaq.store.probing import MAX_QUEUES, QueueLag, StoreHealth
from chokaq.store.sqlserver import documents
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.link import installed
from chokaq.store.sqlserver.scripts import latest
from chokaq.store.versions import is_served


class ProbingOperations(Calling):
    """See `chokaq.store.probing.ProbingSession`."""

    def read_health(self, queues: Sequence[str]) -> StoreHealth:
        """Version and lag."""
        names = list(dict.fromkeys(queues))[:MAX_QUEUES]
        for name in names:
            check_name("queue", name)
        mapped = documents.Mapping(names)
        [clock], rows = self._call(
            "ReadHealth", mapped.carriers, documents.dump([{"q": mapped(name)} for name in names])
        )
        found = installed(clock)
        return StoreHealth(
            version=None if found is None else found.version,
            needed=latest(),
            fits=is_served(found, latest()),
            queues=[
                QueueLag(
                    name=name, paused=bool(paused), active=bool(active), oldest_due_ms=None if due is None else int(due)
                )
                for name, paused, active, due in rows
            ],
        )
