"""Another process, as on another host: it cancels jobs, and knows of them only their ids."""

from typing import Any

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.support.program import main


def work(store: Store, _settings: DatabaseSettings, *, index: int, ids: list[str]) -> dict[str, Any]:
    """Cancel them all in one call."""
    session = store.session()
    answers = session.cancel_jobs(ids, f"ann {index}", "wrong list")
    session.close()
    return {answer.id: answer.result for answer in answers}


if __name__ == "__main__":
    main(work)
