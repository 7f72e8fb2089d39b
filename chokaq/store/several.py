"""Several databases behind one client: a job goes where its queue lives; one that is only known by its id is looked for."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from chokaq.lifecycle.states import JobStatus
from chokaq.store.borrowing import foreign
from chokaq.store.client import ClientLane
from chokaq.store.errors import StoreError, StoreRefused
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Enqueued, NewJob

_T = TypeVar("_T")
REMEMBERED = 10_000
"""Jobs whose database is remembered: those that were enqueued or found last."""


def _is_there(answer: object) -> bool:
    return answer is not None


class SeveralLanes:
    """Answers as one `ClientLane` does; every database has a lane of its own, which opens its connection when first needed.

    A job id does not tell its database. It is looked for in each of them, one after the other: first where this process last
    enqueued or found it, and last in those that did not answer the time before. "There is no such job" is said only when all of
    them have said so: else the error of the one that did not answer is raised.
    """

    def __init__(self, databases: Mapping[str, DatabaseSettings], place: Callable[[str], str]) -> None:
        """`databases`: by name, in the order in which they are asked; `place`: queue → name. Raises StoreMisconfigured."""
        self._options = dict(databases)
        self._stores = {name: open_store(options) for name, options in databases.items()}
        self._lanes = {name: ClientLane(self._stores[name], options) for name, options in databases.items()}
        self._place = place
        self._lock = threading.Lock()
        self._where: dict[str, str] = {}
        self._away: frozenset[str] = frozenset()

    def store(self, name: str) -> Store:
        """The store of a database."""
        return self._stores[name]

    # ── enqueue ───────────────────────────────────────────────────────────────────────────────────────────────────────
    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Accept jobs durably; one answer per job, in order. Every database has its own transactions, at the same time.

        What one of them accepts does not depend on the others: an error says what became of the rest, in its notes.
        """
        parts = self._split(jobs)
        if len(parts) == 1:
            [(name, part)] = parts.items()
            return self._remember(name, await self._lanes[name].enqueue(part))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._part(name, part)) for name, part in parts.items()]
        return self._joined(jobs, parts, [task.result() for task in tasks])

    async def _part(self, name: str, jobs: Sequence[NewJob]) -> list[Enqueued] | StoreError:
        try:
            return await self._lanes[name].enqueue(jobs)
        except StoreError as error:
            return error

    def enqueue_sync(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """As `enqueue`, for threads; one database after the other."""
        parts = self._split(jobs)
        if len(parts) == 1:
            [(name, part)] = parts.items()
            return self._remember(name, self._lanes[name].enqueue_sync(part))
        return self._joined(jobs, parts, [self._part_sync(name, part) for name, part in parts.items()])

    def _part_sync(self, name: str, jobs: Sequence[NewJob]) -> list[Enqueued] | StoreError:
        try:
            return self._lanes[name].enqueue_sync(jobs)
        except StoreError as error:
            return error

    def enqueue_in(self, cursor: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """As `Store.enqueue_in`, in the database of the jobs' queues. Raises StoreRefused when it is not the cursor's."""
        parts = self._split(jobs)
        if len(parts) > 1:
            told = "; ".join(
                f"{name} ({', '.join(sorted({job.queue for job in part}))})" for name, part in parts.items()
            )
            raise StoreRefused(
                f"a transaction reaches one database, and the queues of these jobs live in several: {told}"
            )
        for name in parts:
            told = f"the queue {jobs[0].queue} lives in the database {name}"
            problem = foreign(cursor, self._options[name])
            if problem is not None:
                raise StoreRefused(f"{told}; {problem}")
            try:
                return self._remember(name, self._stores[name].enqueue_in(cursor, jobs))
            except StoreRefused as error:
                error.add_note(told)
                raise
        return []

    # ── by id ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def status(self, job_id: str) -> JobStatus | None:
        """The state of a job; many waiters share a call."""
        return await self._find(job_id, lambda lane: lane.status(job_id), _is_there)

    def status_sync(self, job_id: str) -> JobStatus | None:
        """As `status`, for threads."""
        return self._find_sync(job_id, lambda lane: lane.status_sync(job_id), _is_there)

    async def find(
        self, job_id: str, operation: Callable[[Session], _T], found: Callable[[_T], bool] = _is_there
    ) -> _T:
        """Run an operation about a job in one database after the other, up to the first whose answer is `found`; else the last
        answer."""
        return await self._find(job_id, lambda lane: lane.call(operation), found)

    def find_sync(self, job_id: str, operation: Callable[[Session], _T], found: Callable[[_T], bool] = _is_there) -> _T:
        """As `find`, for threads."""
        return self._find_sync(job_id, lambda lane: lane.call_sync(operation), found)

    async def _find(self, job_id: str, ask: Callable[[ClientLane], Awaitable[_T]], found: Callable[[_T], bool]) -> _T:
        search = _Search[_T](found)
        for name in self._order(job_id):
            try:
                search.heard(name, await ask(self._lanes[name]))
            except StoreError as error:
                search.failed(name, error)
            if search.over:
                break
        return self._end(job_id, search)

    def _find_sync(self, job_id: str, ask: Callable[[ClientLane], _T], found: Callable[[_T], bool]) -> _T:
        search = _Search[_T](found)
        for name in self._order(job_id):
            try:
                search.heard(name, ask(self._lanes[name]))
            except StoreError as error:
                search.failed(name, error)
            if search.over:
                break
        return self._end(job_id, search)

    def _order(self, job_id: str) -> list[str]:
        """The databases to ask: where the job was last, the others, those that did not answer last."""
        known = self._where.get(job_id)
        return sorted(self._lanes, key=lambda name: (name != known, name in self._away))

    def _end(self, job_id: str, search: "_Search[_T]") -> _T:
        self._away = (self._away - search.answered) | search.errors.keys()
        if search.over is not None:
            with self._lock:
                self._note(job_id, search.over)
        return search.result()

    # ── everything else ───────────────────────────────────────────────────────────────────────────────────────────────
    def ring(self, *queues: str) -> None:
        """Wake an idle child of each queue on this host, if there is one. Never blocks, never raises."""
        for queue in queues:
            self._lanes[self._place(queue)].ring(queue)

    def close(self, timeout: float | None = None) -> None:
        """Finish what is under way and close the connections. A later call opens new ones."""
        for lane in self._lanes.values():
            lane.close(timeout)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _split(self, jobs: Sequence[NewJob]) -> dict[str, list[NewJob]]:
        """The jobs of each database, in order."""
        parts: dict[str, list[NewJob]] = {}
        for job in jobs:
            parts.setdefault(self._place(job.queue), []).append(job)
        return parts

    def _joined(
        self,
        jobs: Sequence[NewJob],
        parts: Mapping[str, Sequence[NewJob]],
        outcomes: Sequence[list[Enqueued] | StoreError],
    ) -> list[Enqueued]:
        """The answers in the order of the jobs. Raises the first error, with what became of the jobs of the others."""
        answers: dict[str, Iterator[Enqueued]] = {}
        errors: dict[str, StoreError] = {}
        accepted: dict[str, Enqueued] = {}
        for name, outcome in zip(parts, outcomes, strict=True):
            if isinstance(outcome, StoreError):
                errors[name] = outcome
                accepted |= outcome.accepted
            else:
                accepted |= {job.id: answer for job, answer in zip(parts[name], outcome, strict=True)}
                answers[name] = iter(self._remember(name, outcome))
        if not errors:
            return [next(answers[self._place(job.queue)]) for job in jobs]
        (name, first), *others = errors.items()
        first.accepted = accepted
        first.add_note(f"this was the database {name}, with {_jobs(parts[name])}")
        for name in answers:
            first.add_note(f"the database {name} has accepted its {_jobs(parts[name])}")
        for name, error in others:
            first.add_note(f"the database {name}, with {_jobs(parts[name])}, failed too: {error}")
        raise first

    def _remember(self, name: str, answers: list[Enqueued]) -> list[Enqueued]:
        with self._lock:
            for answer in answers[-REMEMBERED:]:
                self._note(answer.id, name)
        return answers

    def _note(self, job_id: str, name: str) -> None:
        self._where[job_id] = name
        if len(self._where) > REMEMBERED:
            del self._where[next(iter(self._where))]


class _Search(Generic[_T]):
    """What the databases said so far, when one after the other is asked for a job."""

    def __init__(self, found: Callable[[_T], bool]) -> None:
        self.over: str | None = None
        """The database that holds the job."""
        self.answered: set[str] = set()
        self.errors: dict[str, StoreError] = {}
        self._found = found
        self._answers: list[_T] = []

    def heard(self, name: str, answer: _T) -> None:
        """A database answered."""
        self.answered.add(name)
        self._answers.append(answer)
        if self._found(answer):
            self.over = name

    def failed(self, name: str, error: StoreError) -> None:
        """A database did not."""
        self.errors[name] = error

    def result(self) -> _T:
        """The answer that was found, or that of the last one when all have answered. Raises the first error otherwise."""
        if self.over is None and self.errors:
            name, error = next(iter(self.errors.items()))
            others = f"; {', '.join(sorted(self.answered))}: there is no such job" if self.answered else ""
            error.add_note(f"this was the database {name}, which may hold the job{others}")
            raise error
        return self._answers[-1]


def _jobs(part: Sequence[NewJob]) -> str:
    return "1 job" if len(part) == 1 else f"{len(part):,} jobs"
