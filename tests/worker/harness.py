"""A child in this process, on a real SQLite file, with a slot that remembers and a store that can be made to fail."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from chokaq.app import ChokaQ
from chokaq.config.settings import Policy, QueueSettings, Settings, SupervisorSettings
from chokaq.lifecycle.states import Pillar
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Held, JobView
from chokaq.worker.boot import worker_info
from chokaq.worker.engine import Engine
from chokaq.worker.status import ExitCode
from tests.support.jobs import new_job
from tests.support.lab_sqlite import SqliteLab

QUEUE = "emails"
KEY = "email.send.v1"


class Send(msgspec.Struct):
    """The contract of most tests."""

    n: int = 0


class Slot:
    """A slot of the status board that remembers what was written."""

    runners = 1_024

    def __init__(self) -> None:
        self.worker_id: str | None = None
        self.is_ready = asyncio.Event()
        self.is_draining = False
        self.asked_replacement = 0
        self.reaches: bool | None = None
        self.begun: list[tuple[int, Held, float]] = []
        self.running: dict[int, Held] = {}
        self.most = 0
        self.pulses: list[dict[str, int]] = []

    def identify(self, worker_id: str) -> None:
        self.worker_id = worker_id

    def progress(self) -> None: ...

    def ready(self) -> None:
        self.is_ready.set()

    def pulse(self, **figures: int) -> None:
        self.pulses.append(figures)

    def begin(self, runner: int, job: Held, hard_deadline: float) -> None:
        self.begun.append((runner, job, hard_deadline))
        self.running[runner] = job
        self.most = max(self.most, len(self.running))

    def end(self, runner: int) -> None:
        del self.running[runner]

    def reaches_store(self, reachable: bool) -> None:
        self.reaches = reachable

    def in_a_hurry(self) -> bool:
        return True

    def draining(self) -> None:
        self.is_draining = True

    def ask_replacement(self) -> None:
        self.asked_replacement += 1


class Faults:
    """A store whose sessions report every call to `before` and `after`, which may raise, and remember it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.sessions = 0
        self.before: Callable[[str, tuple[Any, ...]], None] = lambda _name, _args: None
        self.after: Callable[[str, tuple[Any, ...]], None] = lambda _name, _args: None
        self.connect: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def session(self) -> Session:
        self.connect()
        self.sessions += 1
        return FaultySession(self._store.session(), self)  # type: ignore[return-value]

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of every call of one operation, after the worker."""
        return [args[1:] for called, args in list(self.calls) if called == name]


class FaultySession:
    def __init__(self, session: Session, faults: Faults) -> None:
        self._session = session
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        real, faults = getattr(self._session, name), self._faults

        def call(*args: Any, **options: Any) -> Any:
            faults.before(name, args)
            answer = real(*args, **options)
            faults.calls.append((name, args))
            faults.after(name, args)
            return answer

        return real if name == "close" else call


class House:
    """An application, its database and its settings."""

    def __init__(self, folder: Path, *, grace: float = 30.0, policy: Policy | None = None, **queue: Any) -> None:
        chosen = policy or Policy(retry_base_delay=0.001, retry_jitter=0.0)
        self.queue = QueueSettings(
            **{"name": QUEUE, "poll_min": 0.005, "poll_max": 0.05, "heartbeat": 0.05, "policy": chosen, **queue}
        )
        self.settings = Settings(
            database=DatabaseSettings(url=f"sqlite:///{folder / 'jobs.db'}"),
            queues={QUEUE: self.queue},
            defaults=chosen,
            supervisor=SupervisorSettings(shutdown_grace=grace),
        )
        self.app = ChokaQ(self.settings)
        self.app.job(KEY, queue=QUEUE)(Send)
        real = open_store(self.settings.database)
        real.apply_schema()
        self.store = Faults(real)
        self.session = real.session()
        self.lab = SqliteLab(folder / "jobs.db")
        self.left: list[int] = []

    def close(self) -> None:
        self.app.close()
        self.session.close()
        self.lab.close()

    def enqueue(self, count: int = 1, **fields: Any) -> list[str]:
        """Accept jobs past the application; their ids."""
        jobs = [new_job(**{"queue": QUEUE, "type_key": KEY, "payload": f'{{"n":{n}}}', **fields}) for n in range(count)]
        self.session.enqueue_jobs(jobs)
        return [job.id for job in jobs]

    def view(self, job_id: str) -> JobView:
        view = self.session.get_job(job_id)
        assert view is not None
        return view

    def attempts(self, job_id: str) -> list[dict[str, Any]]:
        return self.lab.query("SELECT * FROM {JobAttempts} WHERE JobId = ? ORDER BY LeaseNumber", job_id)

    def held(self) -> int:
        return self.lab.leases(QUEUE)

    def stands(self, job_id: str) -> Pillar:
        (pillar,) = self.lab.where(job_id)
        return pillar

    def engine(self, slot: Slot, **options: Any) -> Engine:
        return Engine(
            **{
                "settings": self.settings,
                "queue": self.queue,
                "app": self.app,
                "store": self.store,
                "slot": slot,
                "worker": worker_info(self.queue),
                "leave": self.left.append,
                **options,
            }
        )

    @asynccontextmanager
    async def child(self, **options: Any) -> AsyncIterator["Running"]:
        """A ready child; drained and checked at the end unless the test did it."""
        running = Running(self, **options)
        try:
            await running.ready()
            yield running
            await running.drain()
        finally:
            await running.end()
        self.lab.check_invariants()


class Running:
    """A child at work."""

    def __init__(self, house: House, **options: Any) -> None:
        self.slot = Slot()
        self.engine = house.engine(self.slot, **options)
        self.task = asyncio.create_task(self.engine.run())
        self.counts = self.engine.counts

    async def ready(self) -> None:
        """Wait until it claims; a boot that fails raises here."""
        waiting = asyncio.create_task(self.slot.is_ready.wait())
        await asyncio.wait((waiting, self.task), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self.task.done():
            self.task.result()

    async def drain(self) -> ExitCode:
        """Ask it to come to rest, and wait until it has."""
        if not self.task.done():
            self.engine.drain()
        return await self.task

    async def end(self) -> None:
        """Whatever became of the test: leave nothing running."""
        if not self.task.done():
            self.task.cancel()
            await asyncio.wait((self.task,))


async def eventually(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Let the loop turn until `condition` holds: for what a lane's thread or a heartbeat brings about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
    assert condition(), what


async def reached(event: threading.Event, seconds: float = 20.0) -> None:
    """Wait for a thread's event."""
    assert await asyncio.to_thread(event.wait, seconds)
