"""What a child counts for Prometheus, beside what it tells the store. Event loop only, save where it says so.

Cells are resolved once per job type. A job costs a few memory stores: one per figure it appears in.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from chokaq.lifecycle.circuit import CircuitEvent, CircuitState
from chokaq.lifecycle.states import Answer, FailureReason, JobStatus
from chokaq.observe.metrics.catalogue import MOST_ATTEMPTS
from chokaq.observe.metrics.recorder import Recorder
from chokaq.store.records import AttemptError, Failure, FetchedJob, Release, Retry
from chokaq.worker.claims import Claim, Operation

if TYPE_CHECKING:
    from chokaq.worker.pulse import Vitals

PROCEDURES = {
    Operation.START: "StartJobs",
    Operation.SUCCEED: "ArchiveSucceeded",
    Operation.RETRY: "RescheduleForRetry",
    Operation.FAIL: "ArchiveFailed",
    Operation.RELEASE: "ReleaseJobs",
}
_APPLIED = Answer.APPLIED
_ENDED = {
    Answer.CANCELLED: FailureReason.CANCELLED,
    Answer.EXPIRED: FailureReason.RETRY_LIFETIME_EXPIRED,
}


class TypeFigures:
    """The cells of one job type in this child's queue."""

    __slots__ = ("_recorder", "_values", "completed", "lag", "processing")

    def __init__(self, recorder: Recorder, queue: str, type_key: str) -> None:
        self._recorder = recorder
        self._values = (queue, type_key)
        self.completed = recorder.counter("chokaq_jobs_completed_total", queue, type_key)
        self.processing = recorder.histogram("chokaq_jobs_processing_seconds", queue, type_key)
        self.lag = recorder.histogram("chokaq_jobs_queue_lag_seconds", queue, type_key)

    def count(self, name: str, *more: str) -> None:
        """Count what happens to fewer jobs; `more`: the labels beside queue and type."""
        self._recorder.counter(name, *self._values, *more).add()


class Tally:
    """One child's figures."""

    def __init__(self, recorder: Recorder, queue: str) -> None:
        self._recorder = recorder
        self._queue = queue
        self._types: dict[str, TypeFigures] = {}
        self._clock = _StoreClock()
        self._pickup = recorder.histogram("chokaq_jobs_pickup_seconds", queue)
        self._delay = recorder.histogram("chokaq_jobs_settle_delay_seconds", queue)
        self._lag = recorder.histogram("chokaq_loop_lag_seconds", queue)
        self._running = recorder.gauge("chokaq_child_running_jobs", queue)
        self._buffered = recorder.gauge("chokaq_child_buffered_jobs", queue)
        self._capacity = recorder.gauge("chokaq_child_capacity", queue)
        self._memory = recorder.gauge("chokaq_child_memory_bytes", queue)

    def type(self, type_key: str) -> TypeFigures:
        """The cells of a type, made when it is met for the first time."""
        found = self._types.get(type_key)
        if found is None:
            found = self._types[type_key] = TypeFigures(self._recorder, self._queue, type_key)
        return found

    def turned(self, vitals: "Vitals", capacity: int) -> None:
        """Several times a second. `capacity`: handlers that may run at once."""
        self._lag.observe(vitals.loop_lag_ms / 1000)
        self._running.set(vitals.running)
        self._buffered.set(vitals.buffered)
        self._capacity.set(capacity)
        self._memory.set(vitals.memory_kb * 1024)

    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    def claimed(self, claims: Sequence[Claim]) -> None:
        """Freshly claimed jobs have come in."""
        now = self._clock.read([claim.job for claim in claims])
        for claim in claims:
            job = claim.job
            if job.due_at == job.created_at:
                # Never put off: its age counts from there.
                claim.waited = job.age_ms / 1000
            else:
                claim.waited = max(0.0, (now - job.due_at).total_seconds())
        self._pickup.observe_all([claim.waited for claim in claims])

    def answered(self, operation: Operation, claims: Sequence[Claim], answers: Sequence[Answer | None]) -> None:
        """The store has answered the transitions of a set."""
        if operation is Operation.START and Answer.STALE not in answers:
            return
        now = time.monotonic()
        self._delay.observe_all(
            [
                now - claim.ended_at
                for claim, answer in zip(claims, answers, strict=True)
                if claim.ended_at and answer is not None
            ]
        )
        if operation is Operation.SUCCEED:
            applied = [claim.figures for claim, answer in zip(claims, answers, strict=True) if answer is _APPLIED]
            for figures, count in Counter(applied).items():
                if figures is not None:
                    figures.completed.add(count)
            if len(applied) == len(claims):
                return
        for claim, answer in zip(claims, answers, strict=True):
            figures = claim.figures
            if answer is None or figures is None:
                continue
            if answer is _APPLIED:
                self._moved(figures, operation, claim)
            elif answer is Answer.STALE:
                figures.count("chokaq_jobs_state_transition_conflicts_total", PROCEDURES[operation])
                self.lost(claim)
            else:
                # Instead of returning to Pending.
                if isinstance(claim.change, Retry):
                    figures.count("chokaq_jobs_failed_total", claim.change.error.type)
                figures.count("chokaq_jobs_dlq_total", _ENDED[answer].label)

    def buried(self, claim: Claim, failure: Failure) -> None:
        """The store refused a job's transition, and has taken it into the DLQ instead."""
        if claim.figures is not None:
            self._stopped(claim.figures, failure)

    def lost(self, claim: Claim) -> None:
        """A job is somebody else's; told as often as one likes."""
        if not claim.disowned and claim.figures is not None:
            claim.disowned = True
            claim.figures.count("chokaq_jobs_lease_losses_total")

    def lost_running(self, claim: Claim) -> None:
        """A renewal told that the job of a handler at work is somebody else's."""
        if not claim.disowned and claim.figures is not None:
            claim.figures.count("chokaq_jobs_state_transition_conflicts_total", "KeepAlive")
        self.lost(claim)

    # ── from any thread ───────────────────────────────────────────────────────────────────────────────────────────────
    def renewals_failed(self, claims: Iterable[Claim]) -> None:
        """The store did not take the renewal of these leases."""
        counts: dict[str, int] = {}
        for claim in claims:
            counts[claim.job.type_key] = counts.get(claim.job.type_key, 0) + 1
        for type_key, count in counts.items():
            self._recorder.add("chokaq_jobs_heartbeat_failures_total", self._queue, type_key, amount=count)

    def key(self, outcome: str) -> None:
        """What became of an idempotency key."""
        self._recorder.add("chokaq_idempotency_claims_total", outcome)

    def circuit(self, type_key: str, state: CircuitState, event: CircuitEvent) -> None:
        """A circuit has told something."""
        self._recorder.add("chokaq_circuits_events_total", type_key, state.name.lower(), event.value)

    def lane(self, name: str) -> "LaneTally":
        """What one lane counts."""
        return LaneTally(self._recorder, self._queue, name)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _moved(self, figures: TypeFigures, operation: Operation, claim: Claim) -> None:
        change = claim.change
        if operation is Operation.RETRY and isinstance(change, Retry):
            figures.count("chokaq_jobs_failed_total", change.error.type)
            figures.count("chokaq_jobs_retried_total", self._attempt(claim.job.attempt_count + 1))
        elif operation is Operation.FAIL and isinstance(change, Failure):
            self._stopped(figures, change)
        elif operation is Operation.RELEASE and isinstance(change, Release):
            figures.count("chokaq_jobs_released_total", _cause(claim, change))

    def _stopped(self, figures: TypeFigures, failure: Failure) -> None:
        if failure.status is JobStatus.FAILED:
            error = failure.error or AttemptError(failure.reason.label, "")
            figures.count("chokaq_jobs_failed_total", error.type)
        figures.count("chokaq_jobs_dlq_total", failure.reason.label)

    def _attempt(self, number: int) -> str:
        return str(number) if number <= MOST_ATTEMPTS else self._recorder.overflow_value


class LaneTally:
    """One lane's figures; written by the lane's thread, `batch` by whoever hands it its sets."""

    def __init__(self, recorder: Recorder, queue: str, lane: str) -> None:
        self._recorder = recorder
        self._queue = queue
        self._lane = lane
        self._away_since: float | None = None

    def answered(self, call: str, asked_at: float) -> None:
        """A call was answered; `asked_at`: when this try of it began, in time.monotonic() seconds."""
        if call not in _NO_CALLS:
            name = procedure(call)
            self._recorder.counter("chokaq_lane_round_trips_total", self._queue, self._lane, name).add()
            seconds = self._recorder.histogram("chokaq_lane_round_trip_seconds", self._lane, name)
            seconds.observe(time.monotonic() - asked_at)

    def failed(self, asked_at: float) -> None:
        """A call got no answer: an outage since it was asked, if there was none before, and until `back`."""
        now = time.monotonic()
        self._away(now - (asked_at if self._away_since is None else self._away_since))
        self._away_since = now

    def back(self) -> None:
        """The store has answered, whatever it said."""
        if self._away_since is not None:
            self._away(time.monotonic() - self._away_since)
            self._away_since = None

    def batch(self, call: str, jobs: int) -> None:
        """A call carried so many jobs."""
        if jobs:
            self._recorder.histogram("chokaq_lane_batch_jobs", self._lane, procedure(call)).observe(jobs)

    def _away(self, seconds: float) -> None:
        self._recorder.counter("chokaq_store_outage_seconds_total", self._lane).add(max(0.0, seconds))


class _StoreClock:
    """What the database's clock shows, as far as fetched jobs tell it."""

    def __init__(self) -> None:
        self._ahead: timedelta | None = None
        """By how much it is ahead of this host's."""

    def read(self, jobs: Sequence[FetchedJob]) -> datetime:
        """Its time when it gave out these jobs.

        A job's age counts from its first due time. One that was never put off tells the time exactly; of the others none tells
        one that is too early.
        """
        here = datetime.now(tz=jobs[0].due_at.tzinfo)
        latest = None
        for job in jobs:
            told = job.due_at + timedelta(milliseconds=job.age_ms)
            if job.due_at == job.created_at:
                self._ahead = told - here
                return told
            if latest is None or told < latest:
                latest = told
        assert latest is not None
        return latest if self._ahead is None else min(latest, here + self._ahead)


def procedure(call: str) -> str:
    """`fetch_jobs` as `FetchJobs`."""
    return _NAMES.get(call) or "".join(part.capitalize() for part in call.split("_"))


_NO_CALLS = ("open", Operation.LEAVE.name)
"""Steps of a lane that ask the store nothing of their own."""
_NAMES = {operation.name: name for operation, name in PROCEDURES.items()} | {"bury": "ArchiveFailed"}


def _cause(claim: Claim, change: Release) -> str:
    if claim.denied:
        return "circuit"
    if change.delay_ms and claim.route is None:
        return "unknown_type"
    # Only a handler puts its own job off.
    return "snooze" if change.delay_ms and claim.context is not None else "returned"
