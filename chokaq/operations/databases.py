"""The databases that an operation is about: all that the configuration names, or the one that was chosen.

A queue lives in one of them by the configuration; a job is looked for, since its id does not tell. What concerns all of them is
asked of each: an answer that lacks one of them says so, it is never a part that looks like the whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from chokaq.config.settings import Settings
from chokaq.operations.connect import find_store
from chokaq.operations.errors import OperationError
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session, Store

Answer = TypeVar("Answer")
Member = TypeVar("Member")


class Opened(NamedTuple):
    """A database with an open session."""

    name: str
    store: Store
    session: Session


class Databases:
    """Opens a session where one is needed, and closes all of them at its end. For one thread."""

    def __init__(self, settings: Settings, only: str | None = None) -> None:
        """`only`: the name of the one that was chosen; None: all. Raises OperationError when there is none of that name."""
        known = settings.named_databases
        if only is not None and only not in known:
            raise OperationError(f"there is no database {only!r}: the configuration names {', '.join(known)}")
        self._settings = settings
        self._options = known if only is None else {only: known[only]}
        self._opened: dict[str, Opened] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        for opened in self._opened.values():
            opened.session.close()
        self._opened.clear()

    @property
    def names(self) -> list[str]:
        """Those it is about, in the order of the configuration."""
        return list(self._options)

    @property
    def several(self) -> bool:
        """True when an answer has to name the database."""
        return len(self._options) > 1

    # ── one of them ───────────────────────────────────────────────────────────────────────────────────────────────────
    def store(self, name: str) -> Store:
        """The store of a database, without a session. Raises StoreMisconfigured."""
        with self._named(name):
            return find_store(self._options[name])

    def open(self, name: str) -> Opened:
        """A database with a session. Raises StoreUnavailable, StoreMisconfigured or SchemaMismatch."""
        opened = self._opened.get(name)
        if opened is None:
            store = self.store(name)
            with self._named(name):
                opened = self._opened[name] = Opened(name, store, store.session())
        return opened

    def of_queue(self, queue: str) -> Opened:
        """Where a queue lives; the chosen one, where one was chosen."""
        name = self._settings.database_name(queue) if self.several else self.names[0]
        return self.open(name)

    def one(self, what: str, queue: str | None = None) -> Opened:
        """The database of `what` works in one of them only: that of a queue, or the only one. Raises OperationError."""
        if queue is not None:
            return self.of_queue(queue)
        if self.several:
            raise OperationError(
                f"{what} works on one database at a time, and there are several ({', '.join(self.names)}): "
                "name one with --database, or a queue with --queue"
            )
        return self.open(self.names[0])

    def run(self, name: str, ask: Callable[[Opened], Answer]) -> Answer:
        """Ask one of them; its errors tell which it was."""
        opened = self.open(name)
        with self._named(name):
            return ask(opened)

    # ── all of them ───────────────────────────────────────────────────────────────────────────────────────────────────
    def all(self, ask: Callable[[Opened], Answer]) -> dict[str, Answer]:
        """The answer of each. Raises the first error: where a part would look like the whole."""
        return {name: self.run(name, ask) for name in self.names}

    def heard(self, ask: Callable[[Opened], Answer]) -> tuple[dict[str, Answer], dict[str, StoreError]]:
        """The answers, and the errors of those that did not; raises when none did. The session of one that failed is closed."""
        answers: dict[str, Answer] = {}
        errors: dict[str, StoreError] = {}
        for name in self.names:
            try:
                answers[name] = self.run(name, ask)
            except StoreError as error:
                errors[name] = error
                opened = self._opened.pop(name, None)
                if opened is not None:
                    opened.session.close()
        if not answers:
            raise next(iter(errors.values()))
        return answers, errors

    # ── where a job is ────────────────────────────────────────────────────────────────────────────────────────────────
    def divide(self, job_ids: Sequence[str]) -> dict[str, list[str]]:
        """The jobs (1 to 1,000 ids) by the database that holds them; those that none holds stay with the first.

        Raises a StoreError when one that was not found may be in a database that did not answer.
        """
        if not self.several:
            return {self.names[0]: list(job_ids)}
        missing, found = list(job_ids), dict[str, list[str]]()
        failed: StoreError | None = None
        for name in self.names:
            if not missing:
                break
            wanted = list(missing)
            try:
                statuses = self.run(name, lambda opened, wanted=wanted: opened.session.get_statuses(wanted))  # type: ignore[misc]
            except StoreError as error:
                failed = failed or error
                continue
            here = {job_id for job_id, status in zip(wanted, statuses, strict=True) if status is not None}
            if here:
                found[name] = [job_id for job_id in wanted if job_id in here]
            missing = [job_id for job_id in wanted if job_id not in here]
        if missing and failed is not None:
            raise failed
        if missing:
            found.setdefault(self.names[0], []).extend(missing)
        return found

    def holding(self, job_id: str) -> Opened:
        """The database that holds a job; the first when none does. Raises a StoreError as `divide` does."""
        return self.open(next(iter(self.divide([job_id]))))

    def each_job(
        self,
        job_ids: Sequence[str],
        act: Callable[[Opened, list[str]], Sequence[Answer]],
        id_of: Callable[[Answer], str],
    ) -> list[Answer]:
        """Act on jobs where they are, one call for each database; the answers in the order of the ids."""
        parts = self.divide(job_ids)
        answers: dict[str, Answer] = {}
        for name, part in parts.items():
            for answer in self.run(name, lambda opened, part=part: act(opened, part)):  # type: ignore[misc]
                answers[id_of(answer)] = answer
        return [answers[job_id] for job_id in job_ids if job_id in answers]

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            error.database = name
            raise


def placed(answers: Mapping[str, Sequence[Member]]) -> list[tuple[str, Member]]:
    """Lists of several databases as one, each member with the name of its own."""
    return [(name, member) for name, members in answers.items() for member in members]
