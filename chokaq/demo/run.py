"""One run of the demo: start the outside world and a worker, enqueue, kill a child halfway, wait, account."""

import importlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from chokaq.config import load_settings
from chokaq.demo.accounting import JobFate, QueueAccount, account
from chokaq.demo.errors import DemoError
from chokaq.demo.programs import Endpoints, Worker, examples_folder, parent_of
from chokaq.demo.workload import Workload, build
from chokaq.lifecycle.states import Pillar
from chokaq.store.open import open_store
from chokaq.store.protocol import Session, Store
from chokaq.store.records import JobFilter, QueueView

TICK_SECONDS = 0.5
PAGE = 500
VICTIM_QUEUE = "messages"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asked for."""

    scale: float = 1.0
    database: str | None = None
    kill: bool = True
    keep: bool = False
    timeout: float = 1_500.0
    """Seconds after which the run stops waiting and reports what is unfinished."""


class Progress(msgspec.Struct, kw_only=True):
    """What the live view shows."""

    seconds: float
    enqueued: dict[str, int]
    total: dict[str, int]
    queues: dict[str, QueueView]
    killed_pid: int | None


class Seen(msgspec.Struct, kw_only=True):
    """What the run saw, for the verdict."""

    seconds: float
    before: dict[str, QueueView]
    after: dict[str, QueueView]
    exit_code: int = 0
    arrivals: dict[str, dict[str, int]] = {}

    def retried(self, queue: str) -> int:
        """Retries of a queue during the run."""
        earlier = self.before[queue].retried_total if queue in self.before else 0
        return self.after[queue].retried_total - earlier if queue in self.after else 0


class Verdict(msgspec.Struct, kw_only=True):
    """The end of a run."""

    queues: dict[str, QueueAccount]
    lost: int
    unexplained: int
    unfinished: int
    seconds: float
    killed_pid: int | None
    killed_running: int
    """Jobs the killed child was running."""
    worker_exit_code: int
    folder: str | None

    @property
    def good(self) -> bool:
        """Nothing lost, nothing repeated without a reason, nothing left, and the worker ended well."""
        return not (self.lost or self.unexplained or self.unfinished or self.worker_exit_code)


class Demo:
    """One run; `watch` is called about twice a second with the progress."""

    def __init__(self, options: Options, watch: Callable[[Progress], None]) -> None:
        self.options, self.watch = options, watch
        self.enqueued: dict[str, list[str]] = {}
        self.killed_pid: int | None = None
        self.killed_worker: str | None = None
        self.enqueue_error: BaseException | None = None

    def run(self) -> Verdict:
        """Run it all in a folder of its own, gone at the end unless it is to be kept."""
        if self.options.keep:
            return self._run(Path(tempfile.mkdtemp(prefix="chokaq-demo-")))
        with tempfile.TemporaryDirectory(prefix="chokaq-demo-") as folder:
            return self._run(Path(folder))

    def _run(self, folder: Path) -> Verdict:
        examples = examples_folder()
        config = folder / "chokaq.yaml"
        config.write_text((examples / "chokaq.yaml").read_text())
        os.environ["CHOKAQ_CONFIG"] = str(config)
        if self.options.database:
            os.environ["CHOKAQ_DATABASE_URL"] = self.options.database
        sys.path.insert(0, str(examples))
        settings = load_settings(config)
        if settings.production:
            raise DemoError("the demo does not run where `production` is set: it fills and empties its queues")
        store = open_store(settings.database)
        store.apply_schema()
        workload = build(self.options.scale)
        self._refuse_used_queues(store, workload)
        with Endpoints() as outside:
            environ = {
                "PYTHONPATH": os.pathsep.join(filter(None, (str(examples), os.environ.get("PYTHONPATH")))),
                "SHOP_SMTP": outside.smtp,
                "SHOP_HTTP": outside.http,
                "SHOP_REPORTS": str(folder / "reports"),
            }
            with Worker(config, folder / "worker.log", environ) as worker:
                seen = self._work(store, workload, worker)
                seen.exit_code = worker.stop()
            seen.arrivals = outside.ledger() | {"reports": self._reports(folder / "reports")}
        return self._judge(store, workload, seen, folder)

    def _refuse_used_queues(self, store: Store, workload: Workload) -> None:
        """The demo runs and purges all that stands in its queues: none of it may be anybody else's."""
        session = store.session()
        used = [
            queue
            for queue in workload.queues
            if any(session.list_jobs(JobFilter(pillar=pillar, queue=queue), 1).jobs for pillar in Pillar)
        ]
        session.close()
        if used:
            raise DemoError(
                f"the queue {used[0]} of {store.url} holds jobs already: give the demo a database of its own (--database), "
                "or purge what an earlier demo kept"
            )

    def _work(self, store: Store, workload: Workload, worker: Worker) -> Seen:
        session, began = store.session(), time.monotonic()
        before = self._views(session, workload)
        sender = threading.Thread(target=self._enqueue, args=(workload,), daemon=True)
        sender.start()
        while True:
            worker.check()
            views, elapsed = self._views(session, workload), time.monotonic() - began
            self.watch(
                Progress(
                    seconds=elapsed,
                    enqueued={queue: len(ids) for queue, ids in self.enqueued.items()},
                    total={queue: len(jobs) for queue, jobs in workload.queues.items()},
                    queues=views,
                    killed_pid=self.killed_pid,
                )
            )
            if self.options.kill and self.killed_pid is None:
                self._kill_halfway(session, before, views, len(workload.queues[VICTIM_QUEUE]), worker.process.pid)
            if not sender.is_alive() and not any(map(_open_jobs, views.values())):
                break
            if elapsed > self.options.timeout:
                break
            sender.join(TICK_SECONDS) if sender.is_alive() else time.sleep(TICK_SECONDS)
        session.close()
        if self.enqueue_error is not None:
            raise DemoError(f"enqueueing stopped: {self.enqueue_error}") from self.enqueue_error
        return Seen(seconds=elapsed, before=before, after=views)

    def _enqueue(self, workload: Workload) -> None:
        app = importlib.import_module("shop.jobs").app
        try:
            for queue in ("reports", "emails", "messages"):
                jobs = workload.queues[queue]
                ids = self.enqueued.setdefault(queue, [])
                for start in range(0, len(jobs), 1_000):
                    ids += [job.id for job in app.enqueue_many_sync(jobs[start : start + 1_000])]
        except BaseException as error:  # noqa: BLE001 - told to the main thread
            self.enqueue_error = error
        finally:
            app.close()

    def _kill_halfway(
        self, session: Session, before: dict[str, QueueView], views: dict[str, QueueView], total: int, supervisor: int
    ) -> None:
        view = views.get(VICTIM_QUEUE)
        if view is None or _done(view) - _done(before.get(VICTIM_QUEUE)) < total / 2:
            return
        here = socket.gethostname()
        for worker in session.list_workers():
            ours = worker.queue == VICTIM_QUEUE and worker.host == here and parent_of(worker.pid) == supervisor
            if ours and worker.ended_at is None:
                os.kill(worker.pid, signal.SIGKILL)
                self.killed_pid, self.killed_worker = worker.pid, worker.worker_id
                return

    def _views(self, session: Session, workload: Workload) -> dict[str, QueueView]:
        return {view.name: view for view in session.list_queues() if view.name in workload.queues}

    def _reports(self, folder: Path) -> dict[str, int]:
        counts: dict[str, int] = {}
        for file in folder.glob("*.xlsx"):
            job_id = file.stem.split("--")[1]
            counts[job_id] = counts.get(job_id, 0) + 1
        return counts

    def _judge(self, store: Store, workload: Workload, seen: Seen, folder: Path) -> Verdict:
        session = store.session()
        accounts, running = {}, 0
        for queue in workload.queues:
            arrivals = seen.arrivals.get(queue, {})
            fates = self._fates(session, queue, arrivals)
            running += sum(fate.crashed for fate in fates)
            accounts[queue] = account(queue, fates, arrivals, retried=seen.retried(queue), seconds=seen.seconds)
        if not self.options.keep and self.options.database:
            for queue in workload.queues:
                while session.purge_archive(queue, 0) or session.purge_dlq(queue, 0):
                    pass
        session.close()
        return Verdict(
            queues=accounts,
            lost=sum(line.lost for line in accounts.values()),
            unexplained=sum(line.unexplained for line in accounts.values()),
            unfinished=sum(line.unfinished for line in accounts.values()),
            seconds=round(seen.seconds, 2),
            killed_pid=self.killed_pid,
            killed_running=running,
            worker_exit_code=seen.exit_code,
            folder=str(folder) if self.options.keep else None,
        )

    def _fates(self, session: Session, queue: str, arrived: dict[str, int]) -> list[JobFate]:
        ids = self.enqueued.get(queue, [])
        known = {}
        for pillar in (Pillar.HOT, Pillar.ARCHIVE, Pillar.DLQ):
            known.update({job.id: job for job in _pages(session, JobFilter(pillar=pillar, queue=queue))})
        fates = []
        for job_id in ids:
            job = known.get(job_id)
            suspicious = arrived.get(job_id, 0) > 1 or (job is not None and job.crash_count > 0)
            fates.append(
                JobFate(
                    id=job_id,
                    status=job.status if job is not None else None,
                    lag_ms=(job.started_at - job.due_at).total_seconds() * 1_000 if job and job.started_at else None,
                    crashed=suspicious and self._was_running(session, job_id),
                )
            )
        return fates

    def _was_running(self, session: Session, job_id: str) -> bool:
        return any(
            attempt.error.type == "WorkerDied" and attempt.worker_id == self.killed_worker
            for attempt in session.list_attempts(job_id)
        )


def _pages(session: Session, where: JobFilter) -> Iterable[Any]:
    after: str | None = None
    while True:
        page = session.list_jobs(where, PAGE, after)
        yield from page.jobs
        after = page.after
        if after is None:
            return


def _open_jobs(view: QueueView) -> int:
    return view.pending + view.scheduled + view.fetched + view.processing


def _done(view: QueueView | None) -> int:
    return 0 if view is None else view.succeeded_total + view.failed_total
