"""What an application's process counts of its enqueues: created, duplicate, refused, and how long the calls took."""

import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from chokaq.jobs.enqueue import Enqueue, compose
from chokaq.jobs.registry import Registry
from chokaq.lifecycle.failures import error_name
from chokaq.observe.metrics.sink import Sink
from chokaq.store.errors import StoreError
from chokaq.store.records import Enqueued, NewJob


class Uncounted:
    """A call of which nothing is counted."""

    def compose(self, registry: Registry, items: Iterable[object], max_payload_bytes: int) -> list[NewJob]:
        """The rows of the items. Raises as chokaq.jobs.enqueue.compose does."""
        return [compose(registry, as_item(item), max_payload_bytes) for item in items]

    def answered(self, answers: list[Enqueued]) -> list[Enqueued]:
        """What the store has answered, as it is."""
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        return


class Counted(Uncounted):
    """A call that is counted: one `with` block around everything it does. May be used from any thread."""

    def __init__(self, sink: Sink, method: str) -> None:
        """`method`: enqueue, enqueue_many, enqueue_in or enqueue_many_in."""
        self._sink = sink
        self._method = method
        self._began = time.monotonic()
        self._jobs: list[NewJob] = []
        self._refused: tuple[str, str] | None = None

    def compose(self, registry: Registry, items: Iterable[object], max_payload_bytes: int) -> list[NewJob]:
        """The same; the item that is not what it should be is the one refused, whatever came before it."""
        jobs = []
        for item in items:
            try:
                jobs.append(compose(registry, as_item(item), max_payload_bytes))
            except Exception:
                self._refused = _place(registry, as_item(item))
                raise
        self._jobs = jobs
        return jobs

    def answered(self, answers: list[Enqueued]) -> list[Enqueued]:
        """The store has answered."""
        self._accepted(zip(self._jobs, answers, strict=True))
        return answers

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._sink.observe("chokaq_enqueue_seconds", self._method, value=time.monotonic() - self._began)
        # (Of one whose caller went away nobody here knows what became of it.)
        if isinstance(error, Exception):
            accepted = error.accepted if isinstance(error, StoreError) else {}
            self._accepted((job, accepted[job.id]) for job in self._jobs if job.id in accepted)
            refused = Counter((job.queue, job.type_key) for job in self._jobs if job.id not in accepted)
            if self._refused is not None:
                refused[self._refused] += 1
            for (queue, type_key), count in refused.items():
                self._sink.add("chokaq_jobs_refused_total", queue, type_key, error_name(type(error)), amount=count)

    def _accepted(self, answers: Iterable[tuple[NewJob, Enqueued]]) -> None:
        counts = Counter((job.queue, job.type_key, answer.created) for job, answer in answers)
        for (queue, type_key, created), count in counts.items():
            name = "chokaq_jobs_enqueued_total" if created else "chokaq_jobs_duplicates_total"
            self._sink.add(name, queue, type_key, amount=count)


NOT_COUNTED = Uncounted()


def as_item(job: object) -> Enqueue:
    """A job as an item, with its options or without."""
    return job if isinstance(job, Enqueue) else Enqueue(job)


def _place(registry: Registry, item: Enqueue) -> tuple[str, str]:
    """Queue and type of an item as far as they are registered; empty where not: nobody's typing errors become labels."""
    known = registry.find(item.job) if isinstance(item.job, str) else registry.find_contract(type(item.job))
    queue = item.queue if item.queue is not None else known.queue if known is not None else ""
    return queue if queue in registry.queues else "", known.type_key if known is not None else ""
