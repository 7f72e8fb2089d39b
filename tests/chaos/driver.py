"""The application's side: enqueues a plan while everything else breaks, cancels some of it, and remembers every answer."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session, Store
from tests.chaos.ledger import Ledger
from tests.chaos.workload import Job
from tests.support.ids import new_id

T = TypeVar("T")
BATCH = 40
CANCEL_CHANCE = 0.3
"""Of a batch, that one job accepted shortly before is cancelled."""
PAUSE = 0.05


class Driver(threading.Thread):
    """Enqueues in batches, so far ahead of the workers as `window` allows; what the store does not answer is asked again."""

    def __init__(self, store: Store, ledger: Ledger, jobs: Sequence[Job], window: int, chance: random.Random) -> None:
        super().__init__(name="chaos-driver", daemon=True)
        self.accepted: dict[str, Job] = {}
        self.answered: dict[str, str] = {}
        self.cancels: dict[str, str] = {}
        self.error: BaseException | None = None
        self._store = store
        self._ledger = ledger
        self._jobs = jobs
        self._window = window
        self._chance = chance
        self._given_up = threading.Event()
        self._session: Session | None = None

    @property
    def cancelled(self) -> set[str]:
        """Jobs that stood waiting when they were cancelled: they never run."""
        return {job for job, answer in self.cancels.items() if answer == "cancelled"}

    def run(self) -> None:
        """The whole plan."""
        try:
            for first in range(0, len(self._jobs), BATCH):
                self._enqueue(self._jobs[first : first + BATCH])
                if self._chance.random() < CANCEL_CHANCE:
                    self._cancel()
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.error = error
        finally:
            self._forget_session()

    def add(self, jobs: Sequence[Job]) -> None:
        """Enqueue at once, beside the plan; from the test's thread."""
        session = self._store.session()
        try:
            session.enqueue_jobs([job.new for job in jobs])
        finally:
            session.close()
        self.accepted |= {job.new.id: job for job in jobs}

    def finish(self, timeout: float) -> None:
        """Wait for the end; raises what ended it early."""
        self.join(timeout)
        if self.error is not None:
            raise self.error
        assert not self.is_alive(), f"not all was enqueued within {timeout:g} s"

    def give_up(self) -> None:
        """Enqueue no more."""
        self._given_up.set()
        self.join(30)

    def _enqueue(self, batch: Sequence[Job]) -> None:
        while len(self.accepted) - len(self._ledger.read().done) > self._window and not self._given_up.wait(0.01):
            pass
        answers = self._until_known(lambda session: session.enqueue_jobs([job.new for job in batch]))
        for job, answer in zip(batch, answers, strict=True):
            if answer.created:
                assert answer.id == job.new.id, f"{job.new.id} was created as {answer.id}"
                self.accepted[answer.id] = job
            else:
                self.answered[job.new.id] = answer.id

    def _cancel(self) -> None:
        target, request = self._chance.choice(list(self.accepted)[-3 * BATCH :]), new_id()
        [answer] = self._until_known(
            lambda session: session.cancel_jobs([target], "chaos", "to see what happens", request=request)
        )
        # Of two cancellations of one job the first decides: after that it is final anyway.
        self.cancels.setdefault(target, answer.result)

    def _until_known(self, call: Callable[[Session], T]) -> T:
        while True:
            try:
                if self._session is None:
                    self._session = self._store.session()
                return call(self._session)
            except StoreError as error:
                self._forget_session()
                if self._given_up.wait(PAUSE):
                    raise AssertionError("the scenario ended before the store answered") from error

    def _forget_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
