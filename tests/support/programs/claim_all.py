"""Claim, start and archive a queue beside others until nothing waits in it; the ids of all that was claimed here."""

from typing import Any

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.support.holder import Holder
from tests.support.program import main


def work(store: Store, settings: DatabaseSettings, *, index: int, queue: str, size: int) -> dict[str, Any]:
    """An empty claim ends it only when nothing is due: others may have had the rows for an instant."""
    session = store.session()
    holder = Holder(session, queue)
    served: list[str] = []
    while True:
        held = holder.take(size)
        holder.succeed(held)
        served += [job.id for job in held]
        if not held and holder.fetch(0).next_due_ms is None:
            session.close()
            return {"served": served, "index": index}


if __name__ == "__main__":
    main(work)
