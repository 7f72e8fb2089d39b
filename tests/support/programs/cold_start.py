"""Install the schema and use it at once, as a process does that starts first thing in a new place."""

from typing import Any

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.support.jobs import new_job
from tests.support.program import main


def work(store: Store, settings: DatabaseSettings, *, index: int) -> dict[str, Any]:
    """What this copy applied, and the version it then saw."""
    applied = store.apply_schema()
    session = store.session()
    [answer] = session.enqueue_jobs([new_job()])
    session.close()
    return {
        "applied": applied,
        "version": store.schema_version(),
        "created": answer.created,
        "index": index,
        "schema": settings.schema,
    }


if __name__ == "__main__":
    main(work)
