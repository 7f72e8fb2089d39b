"""The child's desk: every claim it holds, which one starts next, and what the store says about them. Event loop only."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from chokaq.config.settings import Policy, QueueSettings
from chokaq.jobs.dispatch import Dispatcher, Route
from chokaq.lifecycle.states import Answer, CancelReason
from chokaq.store.records import Cancellation, Failure, FetchedJob, LiveQueue, Retry
from chokaq.worker import outcomes
from chokaq.worker.breakers import Breaker, Breakers
from chokaq.worker.buffer import Buffer
from chokaq.worker.claims import BUFFERED, READY, RUNNING, SETTLING, Claim
from chokaq.worker.counts import Counts
from chokaq.worker.foresight import Foresight
from chokaq.worker.limiter import Limiter
from chokaq.worker.runner import Runners
from chokaq.worker.settler import Settler
from chokaq.worker.status import StatusSlot
from chokaq.worker.suspects import Pace
from chokaq.worker.tally import Tally, TypeFigures

_log = structlog.get_logger("chokaq")


class Desk:
    """Buffer and limiter in the middle, settler and runners on either side."""

    def __init__(
        self,
        *,
        queue: QueueSettings,
        app: Any,
        dispatcher: Dispatcher,
        claims: dict[str, Claim],
        settler: Settler,
        runners: Runners,
        slot: StatusSlot,
        counts: Counts,
    ) -> None:
        """`app`: tells the policy of a type; `claims`: every claim this child holds, by job id, shared with the settler."""
        self._queue = queue
        self._app = app
        self._dispatcher = dispatcher
        self._claims = claims
        self._settler = settler
        self._runners = runners
        self._slot = slot
        self._counts = counts
        self._kinds: dict[str, tuple[Policy, Route | None, Breaker, TypeFigures | None]] = {}
        self._live = LiveQueue()
        self._pace = Pace()
        self._foresight = Foresight(queue.buffer_size, queue.largest_buffer)
        self.breakers = Breakers(self._shut)
        self.buffer = Buffer()
        self.limiter = Limiter(min(queue.max_workers, slot.runners))
        self.tally: Tally | None = None
        """What it is counted with; None: not at all. Set before the first job comes."""
        self.open = True
        """False once the child claims no more: nothing is started, what comes in is handed back."""
        self.changed: Callable[[], None] = lambda: None
        """Called when a slot or a place in the buffer may have become free."""
        settler.turning = self.pump
        settler.started = runners.submit
        settler.not_started = self._ended
        runners.ended = self._ended

    # ── room, as the fetcher sees it ──────────────────────────────────────────────────────────────────────────────────
    def held(self) -> int:
        """Jobs buffered, being started or running."""
        return len(self.buffer) + self.limiter.active

    def limit(self) -> int:
        """Handlers that may run at once."""
        return self.limiter.limit

    def ahead(self) -> int:
        """Jobs to hold beyond those running."""
        return self._foresight.ahead

    def accepting(self) -> bool:
        """False once the child claims no more."""
        return self.open

    def is_empty(self) -> bool:
        """True when nothing is held and nothing is unanswered."""
        return not (self.buffer or self.limiter.active or self._settler.unanswered)

    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    def receive(self, jobs: Sequence[FetchedJob]) -> None:
        """Take in freshly claimed jobs."""
        now = time.monotonic()
        fresh: list[Claim] = []
        for job in jobs:
            before = self._claims.get(job.id)
            if before is not None and before.job.lease == job.lease:
                continue
            if before is not None:
                # We lost it, it was rescued, and we are the ones who claimed it again.
                self._lose(before)
            policy, route, breaker, figures = self._kinds.get(job.type_key) or self._kind(job.type_key)
            claim = self._claims[job.id] = Claim(job, policy, route, now, breaker, figures=figures)
            fresh.append(claim)
            if self.open and route is not None and not breaker.circuit.admits(now):
                self._deny(claim, now)
            else:
                self.buffer.push(claim)
        if self.tally is not None and fresh:
            self.tally.claimed(fresh)
        if not self.open:
            self.hand_back_buffer()

    def pass_on_suspects(self) -> None:
        """Hand back suspects that would take more than half the buffer; under a fleet cap, all that would only wait here."""
        keep = 0 if self._is_capped else max(1, self._queue.buffer_size // 2)
        now = time.monotonic()
        for claim in reversed(self.buffer.trim_suspects(keep)):
            self._hand_back(claim, self._pace.delay_ms(now, keep))

    def look_ahead(self) -> None:
        """Four times a second: hand back what would only wait here, for children that are free."""
        foresight, limiter = self._foresight, self.limiter
        foresight.turn(self._counts.started, self.buffer.waited(time.monotonic()), idle=not self.held())
        for claim in self.buffer.trim_sound(foresight.keep + max(0, limiter.limit - limiter.active)):
            self._hand_back(claim)

    def _hand_back(self, claim: Claim, delay_ms: int | None = None) -> None:
        if claim.lost:
            self._settler.forget(claim)
        else:
            self._settler.settle(claim, outcomes.hand_back(claim.job, delay_ms))

    @property
    def _is_capped(self) -> bool:
        """True when every lease held counts against a fleet-wide cap."""
        return self._live.fleet_max_workers is not None or self._queue.fleet_max_workers is not None

    def pump(self) -> None:
        """Start what may start. Every slot taken here is given back in `_ended`."""
        limiter, settler = self.limiter, self._settler
        now = time.monotonic()
        while self.open and limiter.has_room and not settler.is_full:
            claim = self.buffer.pop(suspects=not self._pace.one_runs)
            if claim is None:
                break
            if claim.lost:
                settler.forget(claim)
            elif claim.route is None:
                self._counts.unknown_types += 1
                settler.settle(claim, outcomes.unknown_type(claim.job, claim.policy, self._queue.name))
            elif (breaker := claim.breaker) is not None and (permit := breaker.circuit.permit(now)) is None:
                self._deny(claim, now)
                self._shut(breaker)
            else:
                if breaker is not None:
                    claim.permit = permit
                if claim.is_suspect:
                    self._pace.began(now)
                limiter.acquire()
                settler.start(claim)
        self.changed()

    def _shut(self, breaker: Breaker) -> None:
        """A circuit denies: what is buffered of its type goes back, all in one set."""
        now = time.monotonic()
        for claim in self.buffer.take_out(breaker):
            self._deny(claim, now)

    def _deny(self, claim: Claim, now: float) -> None:
        if claim.lost:
            self._settler.forget(claim)
            return
        assert claim.breaker is not None
        claim.denied = True
        self._settler.settle(claim, outcomes.denied(claim.job, claim.policy, claim.breaker.delay_ms(now)))

    def hand_back_buffer(self) -> None:
        """Return what has not begun."""
        for claim in self.buffer.clear():
            self._hand_back(claim)

    def close(self) -> None:
        """Start nothing more and hand back the buffer; what runs goes on."""
        self.open = False
        self.hand_back_buffer()

    def stop_handlers(self) -> None:
        """Cancel every handler, so that its job can be handed back; what was started but has not begun goes back as well."""
        self._runners.handing_back = True
        running = [claim for claim in self._claims.values() if claim.stage is RUNNING]
        if running:
            _log.warning("drain_timed_out", queue=self._queue.name, running=len(running))
        for claim in running:
            _log.debug("handler_saw_shutdown", job=claim.job.id, type=claim.job.type_key)
            claim.request_stop(CancelReason.SHUTDOWN)

    def _ended(self, claim: Claim) -> None:
        """The claim's slot is free: its handler has ended, or its start came to nothing."""
        self.limiter.release()
        permit, claim.permit = claim.permit, None
        if permit is not None:
            if claim.verdict is False:
                self._blame(claim)
            permit.report(claim.verdict, time.monotonic())
        if claim.is_suspect:
            self._pace.ended(time.monotonic())
        # The slots that one turn of the loop frees are filled together.
        self._settler.soon()

    @staticmethod
    def _blame(claim: Claim) -> None:
        change = claim.change
        if claim.breaker is not None and isinstance(change, Retry | Failure) and change.error is not None:
            claim.breaker.last_error = change.error.type

    def _kind(self, type_key: str) -> tuple[Policy, Route | None, Breaker, TypeFigures | None]:
        """The policy, the route, the breaker and the figures of a type, looked up once in the life of a child."""
        queue = self._queue.name
        policy, route = self._app.policy(queue, type_key), self._dispatcher.find(queue, type_key)
        figures = None if self.tally is None else self.tally.type(type_key)
        kind = self._kinds[type_key] = policy, route, self.breakers.of(type_key, policy), figures
        return kind

    # ── what the store tells ──────────────────────────────────────────────────────────────────────────────────────────
    def beats_told(
        self, claims: Sequence[Claim], answers: Sequence[Answer], cancellations: Sequence[Cancellation]
    ) -> None:
        """What a KeepAlive answered."""
        for claim, answer in zip(claims, answers, strict=True):
            if answer is Answer.STALE:
                self._lose(claim)
        self.cancel(cancellations)

    def cancel(self, cancellations: Sequence[Cancellation]) -> None:
        """Cancellations meant for this child; each is told again and again until its job has moved."""
        for cancellation in cancellations:
            claim = self._claims.get(cancellation.id)
            if (
                claim is None
                or claim.job.lease != cancellation.lease
                or claim.cancellation is not None
                or claim.stage is SETTLING
            ):
                continue
            claim.cancellation = cancellation
            _log.info(
                "cancellation_requested",
                job=claim.job.id,
                type=claim.job.type_key,
                running=claim.stage is RUNNING,
                actor=cancellation.actor,
                why=cancellation.reason,
            )
            claim.request_stop(CancelReason.ADMIN)
            if claim.stage is RUNNING:
                self._limit(claim)

    def heartbeat_failed(self) -> None:
        """Leases could not be renewed for too long, and the queue's settings say that handlers are to stop then."""
        for claim in list(self._claims.values()):
            if claim.stage is RUNNING and claim.reason is None:
                claim.request_stop(CancelReason.HEARTBEAT)
                self._limit(claim)

    def _limit(self, claim: Claim) -> None:
        """One that ignores its cancellation costs its child, as one that ignores its timeout does."""
        claim.deadline = min(claim.deadline, time.monotonic() + claim.policy.hard_limit_grace)
        self._slot.begin(claim.runner, claim.held, claim.deadline)

    def apply_live(self, live: LiveQueue) -> None:
        """The operators' overrides, as the last fetch brought them."""
        if live == self._live:
            return
        self._live = live
        _log.info("queue_settings_changed", queue=self._queue.name, live=live)
        wanted = self._queue.max_workers if live.max_workers is None else live.max_workers
        if wanted > self._slot.runners:
            _log.warning("max_workers_too_high", queue=self._queue.name, wanted=wanted, most=self._slot.runners)
        before = self.limiter.limit
        self.limiter.resize(max(0, min(wanted, self._slot.runners)))
        if self.limiter.limit != before:
            _log.info("capacity_changed", queue=self._queue.name, capacity=self.limiter.limit, before=before)
        timeout = live.execution_timeout_ms
        self._runners.timeout_override = None if timeout is None else timeout / 1000
        if live.paused or not live.active or self.limiter.limit == 0:
            self.hand_back_buffer()

    def _lose(self, claim: Claim) -> None:
        """The lease is someone else's. Believed only while no transition of ours could be what the heartbeat met."""
        if claim.stage is BUFFERED or claim.stage is READY:
            claim.lost = True
            if self.tally is not None:
                self.tally.lost(claim)
        elif claim.stage is RUNNING:
            self._counts.conflicts += 1
            if self.tally is not None:
                self.tally.lost_running(claim)
            claim.request_stop(CancelReason.LOST_LEASE)
