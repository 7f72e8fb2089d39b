"""One child's loop: lanes, tasks and their order from the first connection to the last answer."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from chokaq.config.settings import QueueSettings, Settings
from chokaq.jobs.dispatch import Dispatcher
from chokaq.jobs.idempotency import Idempotent
from chokaq.lifecycle.states import DeathCause
from chokaq.observe.log import tell_repeats
from chokaq.observe.redact import Redactor
from chokaq.observe.tracer import tracing
from chokaq.store.protocol import Session, Store
from chokaq.store.records import CrashPolicies, DeathNotice, Fetch, Registration, WorkerInfo
from chokaq.worker.circuit_news import CircuitNews
from chokaq.worker.claims import Claim, Operation
from chokaq.worker.closing import close_services
from chokaq.worker.counts import Counts
from chokaq.worker.desk import Desk
from chokaq.worker.fetcher import Fetcher
from chokaq.worker.keydesk import KeyDesk
from chokaq.worker.lane import CallLane, Lane
from chokaq.worker.listening import Listener
from chokaq.worker.orphan import start_watchdog
from chokaq.worker.pulse import PulseLane, Vitals, pulse_board
from chokaq.worker.reach import Reach
from chokaq.worker.runner import Runners
from chokaq.worker.settler import Settler
from chokaq.worker.status import ExitCode, StatusSlot
from chokaq.worker.tally import Tally

_log = structlog.get_logger("chokaq")
_LAST_WORDS = 5.0
"""Seconds before the end of the grace at which handlers are cancelled."""
_ORPHAN_MARGIN = 2.0
"""Seconds before its end at which an orphan gives up what still runs."""
_CLOSED_BEFORE = 4.0
"""Seconds before the end of the grace at which closers of the application's services are cancelled."""
_RENEWALS = 3
"""Heartbeats an idempotency key's claim lives at least."""
_RETURNS = (Operation.RETRY, Operation.RELEASE)
"""What brings jobs back to Pending."""


class Engine:
    """A worker for one queue. `run()` serves until it has been drained; `drain()` may be called at any moment, on its loop."""

    def __init__(
        self,
        *,
        settings: Settings,
        queue: QueueSettings,
        app: Any,
        store: Store,
        slot: StatusSlot,
        worker: WorkerInfo,
        parent_pid: int | None = None,
        leave: Callable[[int], None] = os._exit,
        tally: Tally | None = None,
    ) -> None:
        """`app`: a ChokaQ, bound to `settings`; `parent_pid`: the supervisor (None: nobody to outlive); `leave`: ends the process;
        `tally`: what is counted (None: nothing).

        Call it on the running loop. Raises RegistrationError when a handler cannot be understood, TracingNotInstalled.
        """
        self._settings = settings
        self._queue = queue
        self._app = app
        self._store = store
        self._slot = slot
        self._info = worker
        self._parent_pid = parent_pid
        self._leave = leave
        self._tally = tally
        self.counts = Counts()
        self._claims: dict[str, Claim] = {}
        self._vitals = Vitals()
        # As many as may ever run at once, so that none waits for a thread with its clock running; made as they are needed.
        self._executor = ThreadPoolExecutor(slot.runners, thread_name_prefix="chokaq-handler")
        self._redact = Redactor(settings.redact)
        self._tracing = tracing(settings.tracing.enabled, settings.tracing.relation, self._redact)
        self._dispatcher = Dispatcher(app, self._executor)
        once = [layer for layer in app.registry.layers if isinstance(layer, Idempotent)]
        for layer in once:
            layer.check(settings.idempotency)
        self._uses_keys = bool(once)
        self._claim_lane = CallLane("claim", store, self.counts)
        if tally is not None:
            self._claim_lane.tally = tally.lane("claim")
        self._quiet = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._timers: list[asyncio.TimerHandle] = []
        self._listener = Listener(store.identity, queue.name, self._heard)
        self._desk: Desk | None = None
        self._settler: Settler | None = None
        self._told_to_stop = False
        self._hurried_at: float | None = None
        self._retired = False
        self._asked_replacement = False
        self._orphaned = False

    # ── life ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def run(self) -> ExitCode:
        """Open the lanes, register, claim and run jobs until drained.

        Raises StoreMisconfigured, SchemaMismatch or StoreRefused while booting; an unavailable store is waited for.
        """
        lanes: list[Lane] = [self._claim_lane]
        self._slot.identify(self._info.worker_id)
        reach = Reach(self._slot, lanes)
        try:
            await self._claim_lane.start()
            self._slot.progress()
            worker = await self._claim_lane.call("register_worker", lambda session: session.register_worker(self._info))
            lanes += self._assemble(worker)
            for lane in lanes[1:]:
                await lane.start()
                self._slot.progress()
            await self._fetcher.sync()
            if self._uses_keys:
                await self._take_keys().warm()
            async with self._group:
                await self._serve(lanes)
        finally:
            await self._close(lanes)
            reach.close()
        code = self._exit_code()
        self._tell_end(code)
        return code

    def drain(self, *, hurry: bool = True) -> None:
        """Claim no more, hand back what has not begun, let handlers end; near the end of the grace cancel them. Idempotent.

        Without `hurry` they have the time that their own limits give them; a later call may bring the hurry.
        """
        if self._desk is None:
            # Still booting: nothing is held, and an import or a connection attempt may take long.
            self._leave(ExitCode.DONE)
        elif not self._is_orphan():
            if not self._told_to_stop:
                self._told_to_stop = True
                _log.info("draining", queue=self._queue.name, running=self._desk.limiter.active, hurry=hurry)
                self._stop_claiming()
            if not hurry or self._hurried_at is not None:
                return
            self._hurried_at = asyncio.get_running_loop().time()
            self._later(max(0.0, self._settings.supervisor.shutdown_grace - _LAST_WORDS), self._desk.stop_handlers)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _tell_end(self, code: ExitCode) -> None:
        counts = self.counts
        _log.info(
            "worker_stopped",
            queue=self._queue.name,
            worker=self._info.worker_id,
            exit_code=int(code),
            succeeded=counts.succeeded,
            retried=counts.retried,
            failed=counts.failed,
            released=counts.released,
        )
        tell_repeats(all_of_them=True)

    def _assemble(self, worker: Registration) -> list[Lane]:
        self._worker = worker
        settler = self._settler = Settler(self._store, worker, self._claims, self.counts, keys=self._uses_keys)
        runners = self._runners = Runners(self._queue.name, worker.worker_id, settler, self._slot, self.counts)
        runners.redact, runners.tracing = self._redact, self._tracing
        desk = self._desk = Desk(
            queue=self._queue,
            app=self._app,
            dispatcher=self._dispatcher,
            claims=self._claims,
            settler=settler,
            runners=runners,
            slot=self._slot,
            counts=self.counts,
        )
        self._news = CircuitNews(self._claim_lane, worker, desk.breakers, desk.pump)
        self._fetcher = Fetcher(
            lane=self._claim_lane,
            worker=worker,
            queue=self._queue,
            room=desk,
            counts=self.counts,
            deliver=self._deliver,
        )
        runners.spawn = lambda index: self._spawn(runners.run(index), f"runner-{index}")
        self._fetcher.pass_on, self._fetcher.listen = self._listener.pass_on, self._listener.hang
        settler.after_set = self._after_set
        # Handed back for others: those that are idle need not wait for their next poll.
        settler.handed_back = self._listener.ring_others
        desk.changed = self._changed
        pulse = PulseLane(
            self._store,
            self.counts,
            worker=worker,
            queue=self._queue,
            claims=self._claims,
            vitals=self._vitals,
            told=desk.beats_told,
            failing=desk.heartbeat_failed,
            keys=self._uses_keys,
        )
        if self._tally is not None:
            desk.tally = settler.tally = self._tally
            desk.breakers.told = self._tally.circuit
            settler.lane.tally, pulse.tally = self._tally.lane("settle"), self._tally.lane("pulse")
            settler.lane.key_told, pulse.renewals_failed = self._tally.key, self._tally.renewals_failed
        return [settler.lane, pulse]

    def _take_keys(self) -> KeyDesk:
        """Let handlers claim idempotency keys."""
        desk = KeyDesk(
            lane=self._claim_lane,
            worker=self._worker,
            settings=self._settings.idempotency,
            least_ttl=_RENEWALS * self._queue.heartbeat,
            counts=self.counts,
        )
        if self._tally is not None:
            desk.told = self._tally.key
        self._runners.keys = desk
        return desk

    async def _serve(self, lanes: list[Lane]) -> None:
        assert self._desk is not None
        endless = [self._spawn(_watch(lane), f"watch-{lane.name}") for lane in lanes]
        endless.append(
            self._spawn(
                pulse_board(
                    slot=self._slot,
                    vitals=self._vitals,
                    counts=self.counts,
                    held=self._desk.held,
                    limiter=self._desk.limiter,
                    each=self._turned,
                ),
                "board",
            )
        )
        endless.append(self._spawn(self._fetcher.run(), "fetcher"))
        if self._desk.open:
            self._listener.hang()
            self._slot.ready()
            _log.info(
                "worker_started",
                queue=self._queue.name,
                worker=self._worker.worker_id,
                capacity=self._desk.limiter.limit,
            )
        try:
            await self._quiet.wait()
            if self._orphaned:
                await self._release_myself()
        except BaseException:
            self._runners.aborted = True
            raise
        self._runners.close()
        for task in endless:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        return self._group.create_task(self._guarded(work, name), name=name)

    async def _guarded(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """A defect in one task ends the child: runners must not mistake their cancellation for one meant for a handler."""
        try:
            await work
        except Exception as error:
            self._runners.aborted = True
            _log.error("task_failed", queue=self._queue.name, task=name, exc_info=error)
            raise

    async def _close(self, lanes: list[Lane]) -> None:
        for timer in self._timers:
            timer.cancel()
        self._listener.take_down()
        if self._settler is not None:
            self._settler.flush()
        for lane in lanes:
            await lane.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        code = self._exit_code()
        await close_services(self._dispatcher.aclose, self._queue.name, self._time_left(), lambda: self._leave(code))

    def _time_left(self) -> float:
        """Seconds for the application's services: up to shortly before the grace ends, when it is known; else a whole grace."""
        grace = self._settings.supervisor.shutdown_grace
        if self._hurried_at is None:
            return grace
        # The supervisor kills at a tenth, at most 2 s, before the end; a closer is cancelled well before that.
        end = self._hurried_at + grace - min(_CLOSED_BEFORE, grace / 4)
        return max(end - asyncio.get_running_loop().time(), grace / 20)

    def _exit_code(self) -> ExitCode:
        if self._orphaned:
            return ExitCode.ORPHANED
        return ExitCode.RETIRED if self._retired and not self._told_to_stop else ExitCode.DONE

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _deliver(self, fetch: Fetch) -> None:
        assert self._desk is not None
        self._news.told(fetch.circuit_order)
        self._desk.receive(fetch.jobs)
        self._desk.apply_live(fetch.live)
        self._desk.cancel(fetch.cancellations)
        if fetch.retired and not self._retired:
            # Maintenance took this worker for dead. Running jobs find out by themselves; nothing is cancelled for it.
            self._retired = True
            _log.warning("worker_retired", queue=self._queue.name, worker=self._worker.worker_id)
            self._stop_claiming()
        if fetch.draining and not self._asked_replacement:
            self._asked_replacement = True
            _log.info("drain_asked", queue=self._queue.name, worker=self._worker.worker_id)
            self._slot.ask_replacement()
        self._desk.pump()
        self._desk.pass_on_suspects()

    def _changed(self) -> None:
        assert self._desk is not None
        if self._desk.open:
            self._fetcher.room_made()
        elif self._desk.is_empty() and not self._fetcher.claiming:
            self._quiet.set()

    def _after_set(self, operation: Operation) -> None:
        assert self._desk is not None
        if operation is not Operation.START:
            self._fetcher.lease_ended()
        if operation in _RETURNS and self._desk.open:
            self._fetcher.returned()
        self._desk.pump()

    def _heard(self) -> None:
        self._fetcher.ring()

    def _turned(self) -> None:
        """Four times a second."""
        assert self._desk is not None
        self._is_orphan()
        tell_repeats()
        if self._tally is not None:
            self._tally.turned(self._vitals, self._desk.limiter.limit)
        self._desk.look_ahead()
        self._news.turn()
        self._changed()

    def _stop_claiming(self) -> None:
        if self._desk is not None and self._desk.open:
            self._slot.draining()
            self._vitals.draining = True
            self._listener.take_down()
            self._desk.close()
            self._fetcher.nudge()
            self._changed()

    def _later(self, delay: float, call: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(delay, call))

    # ── without a supervisor ──────────────────────────────────────────────────────────────────────────────────────────
    def _is_orphan(self) -> bool:
        """True when the supervisor is gone; the first time it begins the orphan's own way to rest."""
        if self._parent_pid is None or self._desk is None or os.getppid() == self._parent_pid:
            return False
        if not self._orphaned:
            self._orphaned = True
            self._hurried_at = asyncio.get_running_loop().time()
            grace = self._settings.supervisor.shutdown_grace
            _log.warning("orphaned", queue=self._queue.name, grace=grace)
            start_watchdog(grace, self._leave)
            self._stop_claiming()
            self._later(max(0.0, grace - _LAST_WORDS), self._desk.stop_handlers)
            self._later(max(0.0, grace - _ORPHAN_MARGIN), self._quiet.set)
        return True

    async def _release_myself(self) -> None:
        """What a supervisor's notice would have brought about: everything still held goes back, uncharged, and at once."""
        notice = DeathNotice(worker_id=self._worker.worker_id, queue=self._queue.name, cause=DeathCause.SHUTDOWN.value)

        def release(session: Session) -> bool:
            return session.release_worker(self._worker, notice, CrashPolicies()).done

        while not await self._claim_lane.call("release_worker", release):
            pass
        if self._desk is not None and self._desk.limiter.active:
            # Handlers that would not end: from now on every instant they run is an instant too long.
            self._leave(ExitCode.ORPHANED)


async def _watch(lane: Lane) -> None:
    """A lane that ends by itself has met a defect: the child must not go on without it."""
    await asyncio.shield(lane.ended)
    _log.error("loop_stopped_unexpectedly", lane=lane.name)
    raise RuntimeError(f"the {lane.name} lane ended without being asked")
