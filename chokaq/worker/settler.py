"""The settle lane and its counterpart on the loop: starts and outcomes, in sets that form by themselves.

While one call is under way the next set piles up; nothing waits for a timer. What arises in one turn of the event loop goes to the
lane together, at the end of the turn: one wake-up for a whole set, and no call for the first job of it alone. Each operation has
its pile, the lane serves them in turn, starts first. A set is repeated until its outcome is known; one that the store refuses is
split until the bad job is alone, and that one goes to the DLQ with the storage error.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue

import structlog

from chokaq.lifecycle.states import Answer
from chokaq.store.claims import Completion, RunClaim
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import MAX_BYTES_PER_CALL, MAX_JOBS_PER_CALL, Session, Store
from chokaq.store.records import Failure, Registration, Release, Retry
from chokaq.worker.claims import READY, SETTLING, START, STARTING, Change, Claim, Operation
from chokaq.worker.counts import Counts
from chokaq.worker.keydesk import Keyed, Leaving, calls, pending_of
from chokaq.worker.lane import Lane
from chokaq.worker.outcomes import Outcome, refused
from chokaq.worker.tally import Tally
from chokaq.worker.telling import tell_conflict, tell_settled

_log = structlog.get_logger("chokaq")
_FULL = 5_000
"""So many unanswered claims stop further starts: a store that is slower than the handlers slows the handlers down."""
_BYTES_PER_JOB = 200
"""What a job costs in a document beside its error texts, generously."""

Told = Callable[[Operation, Sequence[Claim], Sequence[Answer | None], Failure | None], None]
Piles = tuple[list[Claim], ...]
"""Claims by their operation."""


class SettleLane(Lane):
    """The thread that writes."""

    def __init__(self, store: Store, counts: Counts, worker: Registration, told: Told, *, keys: bool = False) -> None:
        """`told` is called on the loop once per set: the operation, its claims, an answer each (None: left to its lease), and
        the storage error with which a job whose transition was refused stands in the DLQ now.

        `keys`: the application's handlers may hold idempotency keys.
        """
        super().__init__("settle", store, counts)
        self._worker = worker
        self._keys = keys
        self._told = told
        self._incoming: SimpleQueue[Piles | None] = SimpleQueue()
        self._piles = empty_piles()
        self._closed = False
        self.key_told: Callable[[str], None] = _ignore
        """Told, in the lane's thread, what became of an idempotency key."""

    def put(self, piles: Piles) -> None:
        """Queue these claims; never blocks."""
        self._incoming.put(piles)

    def _wake(self) -> None:
        self._incoming.put(None)

    def _warm(self, session: Session) -> None:
        for operation in Operation:
            _send(operation, self._worker, (), session)
        if self._keys:
            session.complete_runs(self._worker, [])
            session.release_claims(self._worker, [])

    def _work(self) -> None:
        while not self._closed:
            self._take(self._incoming.get())
            while any(self._piles):
                for operation in Operation:
                    # What arrived during the previous call goes out with this one.
                    for _ in range(self._incoming.qsize()):
                        self._take(self._incoming.get())
                    if claims := self._cut(operation):
                        if self._keys and operation is not Operation.START:
                            self._close_keys(Leaving(claims))
                        self._apply(operation, claims)

    def _take(self, piles: Piles | None) -> None:
        if piles is None:
            self._closed = True
        else:
            for pile, more in zip(self._piles, piles, strict=True):
                pile.extend(more)

    def _cut(self, operation: Operation) -> list[Claim]:
        """Take from a pile what one call may carry."""
        pile = self._piles[operation]
        count = min(len(pile), MAX_JOBS_PER_CALL)
        if operation in (Operation.RETRY, Operation.FAIL):
            room = MAX_BYTES_PER_CALL
            for index in range(count):
                room -= _weight(pile[index].change)
                if room < 0 < index:
                    count = index
                    break
        claims = pile[:count]
        del pile[:count]
        return claims

    def _apply(self, operation: Operation, claims: list[Claim]) -> None:
        try:
            answers = self._until_known(operation.name, partial(_send, operation, self._worker, claims))
        except StoreRefused as error:
            if len(claims) == 1:
                self._bury(operation, claims[0], error)
                return
            half = len(claims) // 2
            self._apply(operation, claims[:half])
            self._apply(operation, claims[half:])
        else:
            if self.tally is not None and operation is not Operation.LEAVE:
                self.tally.batch(operation.name, len(claims))
            self._tell(self._told, operation, claims, answers, None)

    def _close_keys(self, leaving: Leaving) -> None:
        """Before the jobs: a process that dies in between leaves a marker without a success, never a success without one."""
        for completions in calls(leaving.completed):
            for completion, answer in self._each("complete_runs", completions, _complete):
                self.key_told("complete_conflict" if answer is Answer.STALE else "completed")
                if answer is Answer.STALE:
                    self._counts.keys_lost += 1
                    _log.warning("run_key_lost", job=completion.id, completed=True)
        for claims in calls(leaving.given_up):
            for _, answer in self._each("release_claims", claims, _release):
                if answer is Answer.APPLIED:
                    self.key_told("released")
                    self._counts.keys_released += 1

    def _each(
        self, what: str, claims: list[Keyed], send: Callable[[Registration, list[Keyed], Session], list[Answer]]
    ) -> list[tuple[Keyed, Answer]]:
        """Tell the store of each; one that it refuses is left to its time to live."""
        try:
            answers = self._until_known(what, partial(send, self._worker, claims))
        except StoreRefused as error:
            if len(claims) > 1:
                return [told for claim in claims for told in self._each(what, [claim], send)]
            _log.error("run_key_refused", operation=what, job=claims[0].id, error=str(error))
            return []
        return list(zip(claims, answers, strict=True))

    def _bury(self, operation: Operation, claim: Claim, error: StoreRefused) -> None:
        """Dead-letter the one job whose transition is refused; when that is refused as well its lease will run out.

        (The move to the DLQ replaces a row of the same id that stands there already.)
        """
        failure = refused(claim.job, error)
        if operation is Operation.RELEASE and claim.context is None:
            _log.error("buffered_job_release_failed", job=claim.job.id, type=claim.job.type_key, error=str(error))
        else:
            _log.error(
                "transition_refused",
                operation=operation.name,
                job=claim.job.id,
                type=claim.job.type_key,
                error=str(error),
            )
        answer: Answer | None
        try:
            (answer,) = self._until_known("bury", lambda session: session.archive_failed(self._worker, [failure]))
        except StoreRefused as again:
            _log.error("job_left_to_its_lease", job=claim.job.id, error=str(again))
            answer = None
        # A start that ended in the DLQ did not start: for the loop it is a claim that went elsewhere. Whatever else it was to be,
        # it has failed.
        stands = failure if answer is Answer.APPLIED else None
        if operation is Operation.START:
            self._tell(self._told, operation, [claim], [None], stands)
        else:
            self._tell(self._told, Operation.FAIL, [claim], [answer], stands)


class Settler:
    """The loop's side: queues transitions, counts what is unanswered, forgets claims that are settled."""

    def __init__(
        self,
        store: Store,
        worker: Registration,
        claims: dict[str, Claim],
        counts: Counts,
        *,
        keys: bool = False,
    ) -> None:
        """`claims`: every claim this child holds, by job id; `keys`: handlers may hold idempotency keys."""
        self.lane = SettleLane(store, counts, worker, self._answered, keys=keys)
        self._claims = claims
        self._counts = counts
        self._loop = asyncio.get_running_loop()
        self._outgoing = empty_piles()
        self._turning = False
        self.tally: Tally | None = None
        """What is counted of the answers; None: nothing."""
        self.unanswered = 0
        """Claims with a transition queued or under way."""
        self.turning: Callable[[], None] = lambda: None
        """Called at the end of a turn of the loop in which something arose, before it goes to the lane."""
        self.started: Callable[[Claim], None] = _ignore
        """Called for each claim whose start was applied."""
        self.not_started: Callable[[Claim], None] = _ignore
        """Called for each claim whose start came to nothing."""
        self.after_set: Callable[[Operation], None] = _ignore
        """Called once after each answered set."""
        self.handed_back: Callable[[], None] = _nothing
        """Called once after a set that returned jobs which others may claim at once."""

    @property
    def is_full(self) -> bool:
        """True when nothing more should be started until the store has caught up."""
        return self.unanswered >= _FULL

    def start(self, claim: Claim) -> None:
        """Queue a start."""
        claim.stage = STARTING
        claim.operation = START
        self.unanswered += 1
        self._put(claim)

    def settle(self, claim: Claim, outcome: Outcome) -> None:
        """Queue the claim's last transition."""
        claim.stage = SETTLING
        claim.operation, claim.change = outcome
        self.unanswered += 1
        question = pending_of(claim)
        if question is None:
            self._put(claim)
        else:
            # A key that was asked for and may yet be granted must not be granted to an execution that is over.
            question.add_done_callback(lambda _: self._put(claim))

    def leave(self, claim: Claim) -> None:
        """Drop the claim of a handler that has ended without writing: the job is somebody else's, its keys are given up."""
        if claim.context is not None and claim.context.held_keys:
            self.settle(claim, (Operation.LEAVE, None))
        else:
            self.forget(claim)

    def forget(self, claim: Claim) -> None:
        """Drop a claim without writing: it is somebody else's."""
        claim.stage = SETTLING
        if self._claims.get(claim.job.id) is claim:
            del self._claims[claim.job.id]

    def soon(self) -> None:
        """Call `turning` at the end of this turn of the loop, and let what has arisen by then go to the lane."""
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self.lane.safely, self._turn)

    def flush(self) -> None:
        """Let what has arisen go to the lane now."""
        if any(self._outgoing):
            outgoing, self._outgoing = self._outgoing, empty_piles()
            self.lane.put(outgoing)

    def _turn(self) -> None:
        self.turning()
        self.flush()
        self._turning = False

    def _put(self, claim: Claim) -> None:
        self._outgoing[claim.operation].append(claim)
        self.soon()

    def _answered(
        self,
        operation: Operation,
        claims: Sequence[Claim],
        answers: Sequence[Answer | None],
        buried: Failure | None = None,
    ) -> None:
        self.unanswered -= len(claims)
        if self.tally is not None:
            if buried is not None:
                self.tally.buried(claims[0], buried)
            elif operation is not Operation.LEAVE:
                self.tally.answered(operation, claims, answers)
        if operation is Operation.START:
            self._starts_answered(claims, answers)
        elif operation is Operation.LEAVE:
            for claim in claims:
                self.forget(claim)
        else:
            applied = stopped = 0
            good = Answer.APPLIED
            for claim, answer in zip(claims, answers, strict=True):
                self.forget(claim)
                if answer is good:
                    applied += 1
                    if claim.denied:
                        self._counts.denied += 1
                        applied -= 1
                elif answer:
                    stopped += 1
                else:
                    self._conflict(operation, claim, answer)
            tell_settled(operation, claims, answers)
            self._count(operation, applied)
            # Cancelled or expired instead of returning to Pending.
            self._counts.failed += stopped
            if operation is Operation.RELEASE and any(map(_is_due, claims, answers)):
                self.handed_back()
        self.after_set(operation)

    def _starts_answered(self, claims: Sequence[Claim], answers: Sequence[Answer | None]) -> None:
        good = Answer.APPLIED
        for claim, answer in zip(claims, answers, strict=True):
            if answer is good:
                self._counts.started += 1
                claim.stage = READY
                self.started(claim)
            else:
                self._conflict(Operation.START, claim, answer)
                self.forget(claim)
                self.not_started(claim)

    def _conflict(self, operation: Operation, claim: Claim, answer: Answer | None) -> None:
        if answer is None:
            return
        self._counts.conflicts += 1
        tell_conflict(operation, claim)

    def _count(self, operation: Operation, applied: int) -> None:
        counts = self._counts
        if operation is Operation.SUCCEED:
            counts.succeeded += applied
        elif operation is Operation.RETRY:
            counts.retried += applied
        elif operation is Operation.FAIL:
            counts.failed += applied
        else:
            counts.released += applied


def empty_piles() -> Piles:
    """One for each operation."""
    return tuple([] for _ in Operation)


def _send(operation: Operation, worker: Registration, claims: Sequence[Claim], session: Session) -> list[Answer]:
    if operation is Operation.START:
        return session.start_jobs(worker, [claim.held for claim in claims])
    if operation is Operation.SUCCEED:
        return session.archive_succeeded(worker, [claim.held for claim in claims])
    if operation is Operation.LEAVE:
        return [Answer.STALE] * len(claims)
    changes: list[Change] = [claim.change for claim in claims]
    if operation is Operation.RETRY:
        return session.reschedule_for_retry(worker, changes)  # type: ignore[arg-type]
    if operation is Operation.FAIL:
        return session.archive_failed(worker, changes)  # type: ignore[arg-type]
    return session.release_jobs(worker, changes)  # type: ignore[arg-type]


def _complete(worker: Registration, completions: list[Completion], session: Session) -> list[Answer]:
    return session.complete_runs(worker, completions)


def _release(worker: Registration, claims: list[RunClaim], session: Session) -> list[Answer]:
    return session.release_claims(worker, claims)


def _weight(change: Change) -> int:
    """Bytes a change may take in the document, at worst: every character escaped or astral."""
    if not isinstance(change, Retry | Failure) or change.error is None:
        return _BYTES_PER_JOB
    error = change.error
    return _BYTES_PER_JOB + 4 * (len(error.type) + len(error.message) + len(error.trace or ""))


def _is_due(claim: Claim, answer: Answer | None) -> bool:
    """True for a job that went back without a delay: not one that was denied, put off or snoozed."""
    return answer is Answer.APPLIED and isinstance(claim.change, Release) and not claim.change.delay_ms


def _nothing() -> None:
    """Until the child is wired up."""


def _ignore(_: object) -> None:
    """Until the child is wired up."""
