"""What operators do with stopped jobs: preview, resurrect, drop, purge.

An action by filter is two steps: `preview_jobs` chooses the jobs and tells how many there are, then the action is called with the
ids it chose. In between a job may move on, so every action judges each job anew and answers for it: the preview is advice.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from chokaq.jobs.ids import new_id
from chokaq.lifecycle.states import JobStatus
from chokaq.operations.actor import By, require_operator, require_reason
from chokaq.operations.confirm import Action
from chokaq.operations.edits import PayloadCheck, check_payload
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import MAX_BATCH, check_ids
from chokaq.operations.telling import command
from chokaq.store.protocol import Session
from chokaq.store.repairs import DlqFilter, Edits, RepairAnswer

DEFAULT_MAXIMUM = 100
"""Jobs an action by filter touches when nothing else is said; at most 1,000."""
COUNTED = 10_000
"""Matches are counted up to this."""
SAMPLE = 10

_REVERSIBLE = (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE)
"""What can be resurrected or dropped: a dropped job stays as it is."""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What an action by filter would do at this moment."""

    action: Action | None
    """None: none in particular; every job that matches counts."""
    matched: int
    """Counted up to 10,000."""
    more: bool
    """True when there are more than were counted, or jobs too old for a search to look at."""
    maximum: int
    """Jobs the action touches at most."""
    ids: list[str]
    """The jobs it would touch, newest first."""

    @property
    def affected(self) -> int:
        """How many jobs it would touch."""
        return min(self.matched, self.maximum)

    @property
    def truncated(self) -> bool:
        """True when jobs match that it would not touch: call it again for them."""
        return self.more or self.matched > self.maximum

    @property
    def sample(self) -> list[str]:
        """The newest few."""
        return self.ids[:SAMPLE]


class Repaired(msgspec.Struct, frozen=True):
    """What an action did with each job."""

    answers: list[RepairAnswer]

    @property
    def counts(self) -> dict[str, int]:
        """How many answers of each kind, with a zero for a kind that did not come."""
        found = Counter(answer.result for answer in self.answers)
        return {kind: found.pop(kind, 0) for kind in ("accepted", "wrong_state", "unknown", "key_conflict")} | found

    @property
    def complete(self) -> bool:
        """True when every job was accepted."""
        return all(answer.result == "accepted" for answer in self.answers)


def preview_jobs(
    session: Session, where: DlqFilter, action: Action | None = None, maximum: int = DEFAULT_MAXIMUM
) -> Preview:
    """Count and choose the jobs of the DLQ a filter means, newest first. `maximum`: 1 to 1,000.

    For a resurrection or a drop dropped jobs are left out: they would only be refused. Raises OperationError.
    """
    if not 1 <= maximum <= MAX_BATCH:
        raise OperationError(f"an action by filter touches at most 1 to {MAX_BATCH:,} jobs, not {maximum:,}")
    without_dropped = action in (Action.RESURRECT, Action.DROP)
    if without_dropped and where.status == JobStatus.DROPPED:
        raise OperationError("a dropped job never runs again: purge it, or enqueue its work anew")
    if where.status is not None or not without_dropped:
        found = session.preview_dlq(where, maximum)
        return Preview(action=action, matched=found.matched, more=found.more, maximum=maximum, ids=found.ids)
    parts = [session.preview_dlq(msgspec.structs.replace(where, status=status), maximum) for status in _REVERSIBLE]
    matched = sum(part.matched for part in parts)
    return Preview(
        action=action,
        matched=min(matched, COUNTED),
        more=matched > COUNTED or any(part.more for part in parts),
        maximum=maximum,
        ids=_newest({job_id for part in parts for job_id in part.ids}, session.preview_dlq(where, MAX_BATCH).ids)[
            :maximum
        ],
    )


def _newest(chosen: set[str], order: list[str]) -> list[str]:
    """The chosen jobs in the order in which they stopped, as far as `order` tells it; the rest by id."""
    known = [job_id for job_id in order if job_id in chosen]
    return known + sorted(chosen.difference(known), reverse=True)


@command("resurrect")
def resurrect_jobs(
    session: Session,
    job_ids: Sequence[str],
    who: By,
    *,
    edits: Edits | None = None,
    without_key: bool = False,
    check: PayloadCheck | None = None,
    ring: Callable[[str], None] | None = None,
) -> Repaired:
    """Return 1 to 1,000 stopped jobs to Pending, edited on the way; they keep priority, key and headers, and get a fresh age.

    A job whose key another live job holds answers `key_conflict`; `without_key` leaves the key behind. `check`: what a new
    payload has to pass, given the job. `ring` is called with every queue that has jobs due again, so that an idle worker on this
    host need not wait for its poll (`doorbell`). Raises OperationError.
    """
    require_operator(who)
    ids = check_ids("resurrect", job_ids)
    edits = None if edits == Edits() else edits
    if edits is not None and isinstance(edits.payload, str):
        if len(ids) > 1:
            raise OperationError(f"a payload is for one job: {len(ids):,} jobs cannot share it")
        job = session.get_job(ids[0])
        if job is not None:
            check_payload(job, edits, check)
    answers = session.resurrect_jobs(ids, who.actor, who.reason, edits=edits, without_key=without_key, request=new_id())
    if ring is not None:
        for queue in sorted({answer.queue for answer in answers if answer.queue is not None}):
            ring(queue)
    return Repaired(answers)


@command("drop")
def drop_jobs(session: Session, job_ids: Sequence[str], who: By) -> Repaired:
    """Decide that 1 to 1,000 stopped jobs never run; they are kept, final. The reason is required. Raises OperationError."""
    require_operator(who)
    ids = check_ids("drop", job_ids)
    require_reason(who)
    return Repaired(session.drop_jobs(ids, who.actor, who.reason, request=new_id()))


@command("purge")
def purge_jobs(session: Session, job_ids: Sequence[str], who: By) -> Repaired:
    """Delete 1 to 1,000 jobs that have ended, whatever their status; the audit log keeps what they were. OperationError."""
    require_operator(who)
    return Repaired(session.purge_jobs(check_ids("purge", job_ids), who.actor, who.reason, request=new_id()))
