"""The runners: long-lived tasks that execute started jobs, one after the other, and hand their outcomes to the settler."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from chokaq.jobs.context import JobContext
from chokaq.jobs.runkeys import RunKeys
from chokaq.lifecycle.states import CancelReason
from chokaq.observe.levels import verbose
from chokaq.observe.redact import redact_text
from chokaq.worker import outcomes
from chokaq.worker.claims import RUNNING, SETTLING, Claim
from chokaq.worker.counts import Counts
from chokaq.worker.isolation import isolated
from chokaq.worker.outcomes import Outcome
from chokaq.worker.settler import Settler
from chokaq.worker.spans import end_attempt
from chokaq.worker.status import StatusSlot
from chokaq.worker.timers import Timers

if TYPE_CHECKING:
    from chokaq.observe.tracing import Tracing

_log = structlog.get_logger("chokaq")
_BREATH = 0.01
"""A runner whose handlers never wait lets the loop turn after so many seconds."""


class Runners:
    """All runners of a child. More are started when more jobs run at once than ever before; none is ever stopped early.

    Handlers that never wait are run one after the other by a single runner: it costs a wake-up per set, not one per job. As soon
    as a handler waits, all that is ready gets runners of its own.
    """

    def __init__(self, queue: str, worker_id: str, settler: Settler, slot: StatusSlot, counts: Counts) -> None:
        self._queue = queue
        self._worker_id = worker_id
        self._settler = settler
        self._slot = slot
        self._counts = counts
        self._timers = Timers(self._timed_out)
        self._ready: deque[Claim] = deque()
        self._parked: list[asyncio.Future[None]] = []
        self._count = 0
        self._free = 0
        """Runners awake, or about to wake, whose handler is not waiting: they come back for the next claim."""
        self._closed = False
        self.ended: Callable[[Claim], None] = lambda _claim: None
        """Called when a claim no longer occupies its runner."""
        self.spawn: Callable[[int], object] = lambda _index: None
        """Called to make a task of `run(index)`."""
        self.timeout_override: float | None = None
        """The operators' execution timeout in seconds; wins over every policy while set."""
        self.keys: RunKeys | None = None
        """Where handlers claim idempotency keys."""
        self.tracing: Tracing | None = None
        """Records a span per attempt; None: tracing is off."""
        self.redact: Callable[[str], str] = redact_text
        """Takes secrets out of what is stored of an error."""
        self.handing_back = False
        """True near the end of a drain: what has not begun is handed back."""
        self.aborted = False
        """True when the child is falling over: a cancellation then means the runner itself."""

    def submit(self, claim: Claim) -> None:
        """Run a started claim: as soon as a runner that is awake comes to it, or in one that is woken or made for it."""
        self._ready.append(claim)
        if not self._free:
            self._rouse(1)

    def close(self) -> None:
        """Let every runner end once it has nothing to do."""
        self._closed = True
        self._timers.close()
        self._rouse(len(self._parked))

    async def run(self, index: int) -> None:
        """One runner, until closed. Its maker has counted it as free."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        leave = _Leave(self)
        rested = loop.time()
        while True:
            if self._ready:
                if time.monotonic() - rested > _BREATH:
                    await asyncio.sleep(0)
                    rested = loop.time()
                    continue
                claim = self._ready.popleft()
                outcome = await self._execute(claim, index, task, leave)
                if leave.taken:
                    leave.taken = False
                    self._free += 1
                    rested = loop.time()
                if outcome is None:
                    self._settler.leave(claim)
                else:
                    self._settler.settle(claim, outcome)
                self.ended(claim)
            elif self._closed:
                return
            else:
                self._free -= 1
                parked: asyncio.Future[None] = loop.create_future()
                self._parked.append(parked)
                await parked
                rested = loop.time()

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _rouse(self, count: int) -> None:
        """Wake so many runners, or make them where too few are parked."""
        self._free += count
        for _ in range(count):
            if self._parked:
                parked = self._parked.pop()
                if not parked.done():
                    parked.set_result(None)
            else:
                self.spawn(self._count)
                self._count += 1

    def _waits(self) -> None:
        """A handler waits, and its runner with it: with nobody free, each claim that is ready gets a runner."""
        self._free -= 1
        if not self._free and self._ready:
            self._rouse(len(self._ready))

    async def _execute(self, claim: Claim, index: int, task: "asyncio.Task[Any]", leave: "_Leave") -> Outcome | None:
        job, policy, route = claim.job, claim.policy, claim.route
        if claim.lost or route is None:
            return None
        if claim.reason is not None and claim.reason is CancelReason.ADMIN:
            return outcomes.before_start(job, claim.cancellation)
        if self.handing_back:
            return outcomes.hand_back(job)
        timeout = policy.execution_timeout if self.timeout_override is None else self.timeout_override
        claim.runner = index
        now = time.monotonic()
        if timeout is not None:
            claim.deadline = now + timeout + policy.hard_limit_grace
            self._timers.set(claim, now, timeout)
        self._slot.begin(index, claim.held, claim.deadline)
        claim.context = context = JobContext(job, self._queue, self._worker_id, timeout)
        context.keys = self.keys
        claim.task = task
        claim.stage = RUNNING
        span = None if self.tracing is None else self.tracing.begin(context)
        enter = None if span is None else span.enter
        figures = claim.figures
        if figures is not None:
            figures.lag.observe(claim.waited + now - claim.since)
        error: BaseException | None = None
        try:
            await isolated(route.run(route.decode(job.payload), context), leave, context, enter)
        except GeneratorExit:
            raise
        except BaseException as caught:  # noqa: BLE001 - whatever a handler raises is its outcome, SystemExit included
            error = caught
        # From here on no request to stop reaches this claim: its handler has ended.
        claim.stage = SETTLING
        claim.task = None
        if figures is not None:
            claim.ended_at = ended = time.monotonic()
            figures.processing.observe(ended - now)
        self._timers.clear(claim)
        self._slot.end(index)
        if task.cancelling():
            await self._recover(task, error)
        if error is None:
            lost = claim.reason is not None and claim.reason is CancelReason.LOST_LEASE
            if span is not None:
                end_attempt(span, None if lost else outcomes.SUCCEEDED)
            if lost:
                return None
            claim.verdict = True
            return outcomes.SUCCEEDED
        if verbose.debug:
            _log.debug("handler_raised", job=job.id, type=job.type_key, error=repr(error), reason=claim.reason)
        chance = random.random()
        outcome = outcomes.after_error(
            job,
            policy,
            error,
            claim.reason,
            claim.cancellation,
            chance=chance,
            classify=route.classify,
            redact=self.redact,
        )
        if span is not None:
            end_attempt(span, outcome)
        error = None  # its traceback holds this frame: break the circle
        claim.verdict = outcomes.verdict(outcome)
        return outcome

    async def _recover(self, task: "asyncio.Task[Any]", error: BaseException | None) -> None:
        """Wipe cancellations meant for the handler off the runner's task, one that it never received included."""
        if self.aborted:
            raise error or asyncio.CancelledError
        while task.uncancel() > 0:
            pass
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self.aborted:
                raise

    def _timed_out(self, claim: Claim) -> None:
        if claim.stage is RUNNING:
            self._counts.timeouts += 1
            claim.request_stop(CancelReason.TIMEOUT)


class _Leave:
    """Told when a runner's handler waits; one per runner, so that a job costs none."""

    __slots__ = ("_runners", "taken")

    def __init__(self, runners: Runners) -> None:
        self._runners = runners
        self.taken = False
        """True from the handler's first wait until its runner is back."""

    def __call__(self) -> None:
        self.taken = True
        self._runners._waits()
