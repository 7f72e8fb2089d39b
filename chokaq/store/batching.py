"""How jobs to enqueue are put into calls: at most 1,000 jobs and 4 MB each, every idempotency key once."""

from collections.abc import Callable, Iterator, Sequence

from chokaq.store.protocol import MAX_BYTES_PER_CALL, MAX_JOBS_PER_CALL
from chokaq.store.records import Enqueued, NewJob

_ROW_BYTES = 300
"""What a job weighs beside its texts: id, names, numbers, and the document around them."""


def weigh(job: NewJob) -> int:
    """About how many bytes of a call a job takes."""
    size = _ROW_BYTES + len(job.payload) + len(job.headers or "")
    if job.tags or job.idempotency_key or job.created_by:
        size += 6 * (len(job.tags or "") + len(job.idempotency_key or "") + len(job.created_by or ""))
    return size


def chunks(jobs: Sequence[NewJob]) -> Iterator[list[NewJob]]:
    """The jobs in order, in lists that one call may carry."""
    chunk: list[NewJob] = []
    size = 0
    for job in jobs:
        weight = weigh(job)
        if chunk and (len(chunk) >= MAX_JOBS_PER_CALL or size + weight > MAX_BYTES_PER_CALL):
            yield chunk
            chunk, size = [], 0
        chunk.append(job)
        size += weight
    if chunk:
        yield chunk


def enqueue_folded(call: Callable[[Sequence[NewJob]], list[Enqueued]], jobs: Sequence[NewJob]) -> list[Enqueued]:
    """The answers of `call` for `jobs`, in order; of jobs with an equal key only the first is sent, and answers for all.

    The others answer `created=False`. When an older job holds the key with yet another payload than the first one offered, the
    next different payload is sent in a further call, so that the store compares it.
    """
    answers: dict[int, Enqueued] = {}
    waiting = list(range(len(jobs)))
    while waiting:
        firsts, folded = _fold(jobs, waiting)
        answers.update(zip(firsts, call([jobs[index] for index in firsts]), strict=True))
        waiting = []
        for index, first in folded:
            winner = answers[first]
            same = jobs[index].payload == jobs[first].payload
            if winner.payload_differs and not same:
                waiting.append(index)
            else:
                answers[index] = Enqueued(winner.id, False, winner.status, not same or winner.payload_differs)
    return [answers[index] for index in range(len(jobs))]


def _fold(jobs: Sequence[NewJob], indexes: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """The indexes to send, and those folded, each with the one that answers for it."""
    first_of: dict[str, int] = {}
    firsts: list[int] = []
    folded: list[tuple[int, int]] = []
    for index in indexes:
        key = jobs[index].idempotency_key
        first = index if key is None else first_of.setdefault(key, index)
        if first == index:
            firsts.append(index)
        else:
            folded.append((index, first))
    return firsts, folded
