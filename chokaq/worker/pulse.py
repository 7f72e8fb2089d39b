"""The pulse lane renews every lease this child holds; the board's pulse tells the supervisor that the loop still turns."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import structlog

from chokaq.config.settings import QueueSettings
from chokaq.lifecycle.states import Answer
from chokaq.store.claims import RunClaim
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import MAX_JOBS_PER_CALL, Session, Store
from chokaq.store.records import Beat, Cancellation, Figures, Registration
from chokaq.worker.claims import RUNNING, Claim
from chokaq.worker.counts import Counts
from chokaq.worker.keydesk import calls, renewable
from chokaq.worker.lane import Lane
from chokaq.worker.limiter import Limiter
from chokaq.worker.status import StatusSlot

_log = structlog.get_logger("chokaq")
_TURN = 0.25
"""Seconds between two pulses on the board."""
_PAGE_KB = 4
_TURNS_PER_MEMORY = 4

Told = Callable[[Sequence[Claim], Sequence[Answer], Sequence[Cancellation]], None]


class Vitals:
    """What a child says of itself; written by the loop, read by the pulse lane."""

    __slots__ = ("buffered", "draining", "loop_lag_ms", "memory_kb", "running", "turned_at")

    def __init__(self) -> None:
        self.turned_at = time.monotonic()
        self.loop_lag_ms = 0
        self.running = 0
        self.buffered = 0
        self.draining = False
        self.memory_kb = memory_kb()

    def figures(self) -> Figures:
        """As sent with a KeepAlive: a loop that stands still now lags now, though it cannot say so itself."""
        stalled = int((time.monotonic() - self.turned_at - _TURN) * 1000)
        return Figures(self.running, self.buffered, max(self.loop_lag_ms, stalled), self.memory_kb, self.draining)


class PulseLane(Lane):
    """Renews leases from a thread of its own, so that a blocked event loop costs no lease."""

    def __init__(
        self,
        store: Store,
        counts: Counts,
        *,
        worker: Registration,
        queue: QueueSettings,
        claims: dict[str, Claim],
        vitals: Vitals,
        told: Told,
        failing: Callable[[], None],
        keys: bool = False,
    ) -> None:
        """`told`: called on the loop once per call of KeepAlive; `failing`: when too many renewals in a row have failed.

        Leases are renewed every `queue.heartbeat` seconds, ±20 %; with `keys`, the idempotency keys that handlers hold as well.
        """
        super().__init__("pulse", store, counts)
        self._worker = worker
        self._queue = queue
        self._claims = claims
        self._vitals = vitals
        self._told = told
        self._failing = failing
        self._keys = keys
        self._failures = 0
        """Renewals that fell due in this outage and were not answered, as far as they have been told."""
        self._reports = 0
        """How often the threshold was reached in this outage."""
        self._renewing: Sequence[Claim] = ()
        self.renewals_failed: Callable[[Sequence[Claim]], None] = lambda _claims: None
        """Told, in the lane's thread, of the claims that a failed call would have renewed."""

    def _warm(self, session: Session) -> None:
        session.keep_alive(self._worker, [], self._vitals.figures())
        if self._keys:
            session.renew_claims(self._worker, [])

    def _work(self) -> None:
        due = time.monotonic() + self._interval()
        while not self._closing.wait(max(0.0, due - time.monotonic())):
            # Counted from the beginning of the round: after an outage the next one follows at once.
            due = time.monotonic() + self._interval()
            claims = self._snapshot()
            for first in range(0, max(1, len(claims)), MAX_JOBS_PER_CALL):
                self._renew(claims[first : first + MAX_JOBS_PER_CALL])
            if self._keys:
                self._renew_keys(claims)

    def _wake(self) -> None:
        """Nothing to do: closing itself ends the wait."""

    def _snapshot(self) -> list[Claim]:
        while True:
            try:
                return list(self._claims.values())
            except RuntimeError:
                # The loop changed it meanwhile (a collection in between lets it run): look again.
                continue

    def _renew(self, claims: list[Claim]) -> None:
        beats = [_beat(claim) for claim in claims]
        self._renewing = claims
        try:
            answers, cancellations = self._call(beats)
        except StoreRefused as error:
            # Progress is the only free text here: without it there is nothing left to refuse but the lease itself.
            _log.warning("progress_refused", error=str(error))
            try:
                answers, cancellations = self._call([Beat(beat.id, beat.lease) for beat in beats])
            except StoreRefused as again:
                _log.error("heartbeat_refused", error=str(again))
                return
        if self.tally is not None:
            self.tally.batch("keep_alive", len(claims))
        self._tell(self._told, claims, answers, cancellations)

    def _renew_keys(self, claims: list[Claim]) -> None:
        for keys in calls(renewable(claims)):
            try:
                answers = self._until_known("renew_claims", partial(_renew_claims, self._worker, keys))
            except StoreRefused as error:
                _log.error("run_keys_refused", error=str(error))
                return
            lost = {key.id for key, answer in zip(keys, answers, strict=True) if answer is Answer.STALE}
            for claim in claims:
                # One that is being settled has just given it up.
                if claim.job.id in lost and claim.stage is RUNNING:
                    _log.warning("run_key_lost", job=claim.job.id, completed=False)

    def _call(self, beats: list[Beat]) -> tuple[list[Answer], list[Cancellation]]:
        return self._until_known(
            "keep_alive", lambda session: session.keep_alive(self._worker, beats, self._vitals.figures())
        )

    def _interval(self) -> float:
        return self._queue.heartbeat * random.uniform(0.8, 1.2)

    def _failed(self, what: str, error: Exception, tries: int) -> None:
        super()._failed(what, error, tries)
        if what == "keep_alive":
            self.renewals_failed(self._renewing)
        if what != "keep_alive" or tries == 0 or self._asked_at is None:
            return
        # One renewal is tried until it succeeds; those that fell due meanwhile have failed as well.
        failures = 1 + int((time.monotonic() - self._asked_at) / self._queue.heartbeat)
        if failures > self._failures:
            self._failures = failures
            _log.warning("heartbeat_failed", queue=self._queue.name, failures=failures)
        reports = failures // self._queue.heartbeat_failure_threshold
        if reports > self._reports:
            self._reports = reports
            if self._queue.cancel_on_heartbeat_failure:
                _log.error("heartbeat_threshold_reached", queue=self._queue.name, failures=failures)
                self._tell(self._failing)
            else:
                _log.warning("heartbeat_degraded", queue=self._queue.name, failures=failures)

    def _answered(self) -> None:
        super()._answered()
        self._reports = self._failures = 0


async def pulse_board(
    *,
    slot: StatusSlot,
    vitals: Vitals,
    counts: Counts,
    held: Callable[[], int],
    limiter: Limiter,
    each: Callable[[], None],
) -> None:
    """Write the child's pulse on the board four times a second, measuring the loop's lag; calls `each` every time. Endless."""
    loop = asyncio.get_running_loop()
    turns = 0
    while True:
        expected = loop.time() + _TURN
        await asyncio.sleep(_TURN)
        vitals.loop_lag_ms = max(0, round((loop.time() - expected) * 1000))
        vitals.turned_at = time.monotonic()
        vitals.running, vitals.buffered = limiter.active, held() - limiter.active
        if turns % _TURNS_PER_MEMORY == 0:
            vitals.memory_kb = memory_kb()
        turns += 1
        slot.pulse(
            loop_lag_ms=vitals.loop_lag_ms,
            running=vitals.running,
            buffered=vitals.buffered,
            completed=counts.completed,
            memory_kb=vitals.memory_kb,
        )
        each()


def _renew_claims(worker: Registration, keys: list[RunClaim], session: Session) -> list[Answer]:
    return session.renew_claims(worker, keys)


def memory_kb() -> int:
    """Resident memory of this process; 0 where the host does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KB
    except (OSError, ValueError, IndexError):
        return 0


def _beat(claim: Claim) -> Beat:
    context = claim.context
    if context is None:
        return Beat(claim.job.id, claim.job.lease)
    progress, note = context.take_progress()
    return Beat(claim.job.id, claim.job.lease, progress, note)
