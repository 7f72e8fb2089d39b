"""Enqueue under the same keys as every copy of this program: round after round, one key a round, and a batch of all."""

from typing import Any

from chokaq.lifecycle.states import KeyScope
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.support.jobs import new_job
from tests.support.program import main


def work(store: Store, settings: DatabaseSettings, *, index: int, rounds: int, scope: int) -> dict[str, Any]:
    """Answers the ids and the created flags, key by key."""
    session = store.session()
    answers: dict[str, list[Any]] = {}
    for number in range(rounds):
        job = new_job(idempotency_key=f"key-{number}", key_scope=KeyScope(scope))
        [answer] = session.enqueue_jobs([job])
        answers[f"key-{number}"] = [answer.id, answer.created]
    keys = [f"batch-{number}" for number in range(rounds)]
    batch = [new_job(idempotency_key=key, key_scope=KeyScope(scope)) for key in keys]
    # Every copy brings its keys in another order: the store sorts them, so nobody deadlocks.
    turned = batch[index % rounds :] + batch[: index % rounds]
    for job, answer in zip(turned, session.enqueue_jobs(turned), strict=True):
        answers[str(job.idempotency_key)] = [answer.id, answer.created]
    session.close()
    return {"answers": answers, "store": settings.schema}


if __name__ == "__main__":
    main(work)
