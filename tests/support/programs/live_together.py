"""One of many processes on one store: enqueue, claim, start, beat and settle, again and again."""

import time
from typing import Any

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from chokaq.store.records import Beat, Figures
from tests.support.holder import Holder
from tests.support.jobs import new_jobs
from tests.support.program import main


def work(store: Store, settings: DatabaseSettings, *, index: int, rounds: int) -> dict[str, Any]:
    """Each round enqueues two jobs and takes up to three, whosever they are."""
    session = store.session()
    holder = Holder(session)
    done, longest = 0, 0.0
    for _ in range(rounds):
        began = time.monotonic()
        session.enqueue_jobs(new_jobs(2))
        held = holder.take(3)
        session.keep_alive(holder.worker, [Beat(h.id, h.lease, 1) for h in held], Figures(running=len(held)))
        holder.succeed(held)
        longest = max(longest, time.monotonic() - began)
        done += len(held)
    session.close()
    return {"done": done, "longest": longest, "index": index, "schema": settings.schema}


if __name__ == "__main__":
    main(work)
