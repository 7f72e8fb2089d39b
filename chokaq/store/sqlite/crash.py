"""What becomes of a job whose owner has ended (design §4): the decisions, collected into moves."""

from collections import Counter

from chokaq.lifecycle.states import DeathCause, FailureReason, JobStatus
from chokaq.store.records import AttemptError, CrashPolicies, CrashPolicy, DeathNotice, Released
from chokaq.store.sqlite.moves import HotJob, Moves


class Verdicts:
    """Decides job by job and counts what went where."""

    def __init__(self, moves: Moves, now: int) -> None:
        """`moves` receives the decisions; `now` in milliseconds."""
        self._moves = moves
        self._now = now
        self._counts: Counter[str] = Counter()

    def released(self, *, done: bool, cursor: str | None = None) -> Released:
        """The counts so far, as the operations answer them."""
        return Released(**self._counts, done=done, cursor=cursor)

    def hand_back(self, job: HotJob) -> None:
        """Uncharged to Pending; Cancelled when that was asked for."""
        if job.cancel_requested is not None:
            self._moves.cancel(job)
            self._counts["cancelled"] += 1
        else:
            self._moves.hand_back(job)
            self._counts["pending"] += 1

    def ended(self, job: HotJob, notice: DeathNotice, policies: CrashPolicies, culprits: set[tuple[str, int]]) -> None:
        """A job of a worker that ended for the cause its notice gives."""
        if job.status == JobStatus.FETCHED:
            self.hand_back(job)
        elif notice.cause == DeathCause.CRASH:
            self.crashed(job, policies, notice.text)
        elif notice.cause == DeathCause.LIMIT and (job.id, job.lease) in culprits:
            self._overran(job, notice.text)
        else:
            self.hand_back(job)

    def crashed(self, job: HotJob, policies: CrashPolicies, message: str) -> None:
        """A started job whose owner died unexpectedly: in this order cancelled, poison, zombie, too old, retried."""
        policy = policies.types.get(job.type_key.lower(), policies.default)
        error = AttemptError("WorkerDied", message)
        due = self._now + _backoff(policy, job.attempts)
        if job.cancel_requested is not None:
            reason, count = FailureReason.CANCELLED, "cancelled"
            self._moves.cancel(job, error, crashed=True)
        elif job.crashes + 1 >= policy.crash_limit:
            reason, count = FailureReason.POISON, "poisoned"
            self._moves.stop(job, JobStatus.ZOMBIE, reason, error, crashed=True)
        elif policy.on_crash != "retry" or job.attempts >= policy.max_attempts:
            reason, count = FailureReason.ZOMBIE, "zombies"
            self._moves.stop(job, JobStatus.ZOMBIE, reason, error, crashed=True)
        elif job.too_old(policy.max_age_ms, due):
            reason, count = FailureReason.RETRY_LIFETIME_EXPIRED, "failed"
            self._moves.expire(job, error, crashed=True)
        else:
            reason, count = FailureReason.ZOMBIE, "pending"
            self._moves.retry(job, due, reason, crashed=True)
        self._moves.attempt(job, self._now, reason, error)
        self._counts[count] += 1

    def _overran(self, job: HotJob, message: str) -> None:
        error = AttemptError("HardLimit", message)
        if job.cancel_requested is not None:
            self._moves.cancel(job, error)
            self._moves.attempt(job, self._now, FailureReason.CANCELLED, error)
            self._counts["cancelled"] += 1
        else:
            self._moves.stop(job, JobStatus.FAILED, FailureReason.TIMEOUT, error)
            self._moves.attempt(job, self._now, FailureReason.TIMEOUT, error)
            self._counts["failed"] += 1


def _backoff(policy: CrashPolicy, attempts: int) -> int:
    if not policy.backoff_ms:
        return 0
    return policy.backoff_ms[max(min(attempts, len(policy.backoff_ms)), 1) - 1]
