"""What only the leader of the fleet shows: depths and ages of all queues, live workers, and what operators did.

As chores, like the rest of its work: one short call of the store, then others have their turn.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from chokaq.lifecycle.states import FailureReason, Pillar
from chokaq.maintenance.chores import Chore
from chokaq.maintenance.tally import MaintenanceTally
from chokaq.observe.metrics.recorder import Gauge, Recorder
from chokaq.store.errors import StoreRefused
from chokaq.store.looking import Browse, Place
from chokaq.store.protocol import Session
from chokaq.store.records import AuditEntry, Leadership, QueueView, WorkerView

_log = structlog.get_logger("chokaq")
_LIVE_MS = 60_000
_PAGE = 500
_OVERLAP = timedelta(seconds=30)
"""An entry of the audit log may be committed later than one that is newer; so long after it is still looked for."""
_LOOKS = 4
"""Pages of the DLQ looked at for the types of what operators cancelled."""
_CANCELLED = '{"status":"Cancelled"}'


class Fleet:
    """The gauges about the whole fleet. They show nothing while this process does not lead, or does not know."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._shown: dict[tuple[str, ...], Gauge] = {}
        self.leading = False
        """This process leads, and knows that it does."""
        self._no_workers = False

    def leads(self, leading: bool) -> None:
        """Whether this process leads the fleet."""
        self.leading = leading
        if not leading:
            self._clear()

    def look(self, session: Session) -> Chore:
        """Read everything, then show it: all figures of one moment, nothing that is no longer so."""
        yield 0.0
        queues = session.list_queues()
        yield 0.0
        workers = self._workers(session)
        if self.leading:
            self._show(queues, workers)

    def _clear(self) -> None:
        for gauge in self._shown.values():
            gauge.clear()
        self._shown.clear()

    def _workers(self, session: Session) -> list[WorkerView] | None:
        if self._no_workers:
            return None
        try:
            return session.list_workers()
        except StoreRefused as error:
            self._no_workers = True
            _log.warning("metrics_without_capacity", problem=str(error))
            return None

    def _show(self, queues: list[QueueView], workers: list[WorkerView] | None) -> None:
        before, self._shown = self._shown, {}
        for queue in queues:
            self._show_queue(queue)
            if workers is not None:
                self._set("chokaq_queue_capacity", queue.name, value=capacity(queue, workers))
        for key, gauge in before.items():
            if key not in self._shown:
                gauge.clear()

    def _show_queue(self, queue: QueueView) -> None:
        resting = queue.live.paused or not queue.live.active
        for state in ("pending", "scheduled", "fetched", "processing"):
            self._set("chokaq_queue_jobs", queue.name, state, value=getattr(queue, state))
        due, running = queue.oldest_due_ms, queue.oldest_running_ms
        self._set("chokaq_queue_lag_seconds", queue.name, value=0.0 if resting or due is None else due / 1000)
        if due is not None:
            self._set("chokaq_queue_oldest_due_seconds", queue.name, value=due / 1000)
        if running is not None:
            self._set("chokaq_queue_oldest_running_seconds", queue.name, value=running / 1000)
        self._set("chokaq_queue_paused", queue.name, value=resting)
        self._set("chokaq_workers_active", queue.name, value=queue.live_workers)

    def _set(self, name: str, *values: str, value: float) -> None:
        gauge = self._recorder.gauge(name, *values)
        self._shown[name, *values] = gauge
        gauge.set(value)


class Operators:
    """Counts the entries of the audit log, each once in the whole fleet: by its leader, from its predecessor's last pass on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._since: datetime | None = None
        self._floor: datetime | None = None
        self._seen: dict[int, datetime] = {}
        self._blind = False

    def took_over(self, now: datetime, last_pass_age_ms: int | None) -> None:
        """This process leads from now on; `last_pass_age_ms`: how long ago the latest pass was, whoever made it."""
        self._floor = self._since = now - timedelta(milliseconds=last_pass_age_ms or 0)
        self._seen.clear()

    def look(self, session: Session) -> Chore:
        """Count what is new."""
        cancelled: list[str] = []
        after: int | None = None
        while not self._blind and self._since is not None:
            yield 0.0
            page = self._page(session, after)
            new = [entry for entry in page if self._is_new(entry)]
            for entry in new:
                self._recorder.add("chokaq_operator_actions_total", entry.action)
            cancelled += [entry.target for entry in new if entry.action == "cancel" and entry.after == _CANCELLED]
            if len(page) < _PAGE or page[-1].at < self._since - _OVERLAP:
                break
            after = page[-1].id
        self._forget()
        if cancelled:
            yield from self._count_cancelled(session, cancelled)

    def _page(self, session: Session, after: int | None) -> list[AuditEntry]:
        try:
            return session.list_audit(None, _PAGE, after)
        except StoreRefused as error:
            self._blind = True
            _log.warning("metrics_without_operators", problem=str(error))
            return []

    def _is_new(self, entry: AuditEntry) -> bool:
        assert self._since is not None
        assert self._floor is not None
        if entry.id in self._seen or entry.at <= self._floor or entry.at < self._since - _OVERLAP:
            return False
        self._seen[entry.id] = entry.at
        return True

    def _forget(self) -> None:
        """What is older than any entry that may still come."""
        if self._seen and self._since is not None:
            self._since = max(self._since, *self._seen.values())
            limit = self._since - _OVERLAP
            self._seen = {number: at for number, at in self._seen.items() if at >= limit}

    def _count_cancelled(self, session: Session, ids: Iterable[str]) -> Chore:
        left = set(ids)
        after: Place | None = None
        for _ in range(_LOOKS):
            yield 0.0
            try:
                page = session.browse_jobs(
                    Browse(pillar=Pillar.DLQ, reason=FailureReason.CANCELLED, by_end=True), _PAGE, after
                )
            except StoreRefused:
                break
            for job in page.jobs:
                if job.id in left:
                    left.discard(job.id)
                    self._count(job.queue, job.type_key)
            after = page.after
            if not left or after is None:
                break
        for _ in left:
            # Resurrected, purged or very many: the count is right all the same.
            self._count("", "")

    def _count(self, queue: str, type_key: str) -> None:
        self._recorder.add("chokaq_jobs_dlq_total", queue, type_key, FailureReason.CANCELLED.label)


class LeaderWatch:
    """Both, with what tells them whether this process leads."""

    def __init__(self, tally: MaintenanceTally) -> None:
        self._tally = tally
        self._leading = False
        self.fleet = Fleet(tally.recorder)
        self.operators = Operators(tally.recorder)

    def leads(self, answer: Leadership | None) -> None:
        """What the store said about leadership just now; None: it did not answer, so that nobody here knows."""
        leading = answer is not None and answer.leading
        self._tally.leads(leading)
        self.fleet.leads(leading)
        if answer is not None:
            if leading and not self._leading:
                self.operators.took_over(answer.now, answer.last_pass_age_ms)
            self._leading = leading


def capacity(queue: QueueView, workers: Iterable[WorkerView]) -> int:
    """Handlers that the live workers of a queue may run at once."""
    live = [worker for worker in workers if worker.queue == queue.name and worker.heartbeat_age_ms < _LIVE_MS]
    each = queue.live.max_workers
    total = sum(worker.max_workers if each is None else each for worker in live)
    cap = queue.live.fleet_max_workers
    return total if cap is None else min(total, cap)
