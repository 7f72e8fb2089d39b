"""Claim, run and settle a queue under a fleet-wide cap until it is empty; watch how many leases are held meanwhile."""

from typing import Any

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.support import stores
from tests.support.holder import Holder
from tests.support.program import main


def work(store: Store, settings: DatabaseSettings, *, index: int, queue: str, cap: int, size: int) -> dict[str, Any]:
    """Until nothing is due and nothing is held by anyone."""
    session = store.session()
    lab = stores.laboratory(settings)
    holder = Holder(session, queue)
    done = most_seen = 0
    while lab.count("JobsHot"):
        held = holder.take(size, cap)
        most_seen = max(most_seen, lab.leases(queue))
        holder.succeed(held)
        done += len(held)
    lab.close()
    session.close()
    return {"done": done, "most_seen": most_seen, "index": index}


if __name__ == "__main__":
    main(work)
