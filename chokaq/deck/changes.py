"""Pure rules: what two looks at the marks say has changed, and whom that concerns."""

from collections.abc import Collection, Mapping

import msgspec

from chokaq.deck import topics
from chokaq.lifecycle.states import Outcome, Pillar
from chokaq.store.looking import Changes, Watched

TICKING = (topics.OVERVIEW, topics.QUEUES, topics.WORKERS)
"""What changes while nothing happens: lag and silence grow."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two looks."""

    hot: frozenset[str] = frozenset()
    """Queues with new jobs, or more or fewer leases."""
    succeeded: frozenset[str] = frozenset()
    """Queues in which jobs ended."""
    failed: frozenset[str] = frozenset()
    retried: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    """Watched jobs that changed, came or went."""
    audit: bool = False
    circuits: bool = False
    workers: bool = False
    """Some came, went or are to end."""
    beats: bool = False
    """Some beat."""

    @property
    def ended(self) -> frozenset[str]:
        """Queues with any outcome."""
        return self.succeeded | self.failed | self.retried

    def concerns(self, topic: str, watched: Collection[str] = ()) -> bool:
        """Whether somebody who listens to a topic, and shows these jobs, has to read again."""
        moved = bool(self.hot or self.ended or self.audit)
        match topic.split(":", 1)[0]:
            case topics.OVERVIEW:
                return moved or self.circuits or self.workers
            case topics.QUEUES:
                return moved or self.workers
            case topics.WORKERS:
                return self.workers or self.beats or bool(self.hot or self.ended)
            case topics.CIRCUITS:
                return self.circuits
            case topics.AUDIT:
                return self.audit
            case topics.NOTHING:
                return False
            case "job":
                return self.audit or topic.removeprefix("job:") in self.jobs
            case "list":
                return self._concerns_list(topic) or not self.jobs.isdisjoint(watched)
            case _:
                return True

    def _concerns_list(self, topic: str) -> bool:
        _, pillar, _, queue = topic.split(":", 3)
        queues: frozenset[str] = frozenset()
        if pillar in ("", Pillar.HOT.value):
            queues |= self.hot | self.ended
        if pillar in ("", Pillar.ARCHIVE.value):
            queues |= self.succeeded
        if pillar in ("", Pillar.DLQ.value):
            queues |= self.failed
        return self.audit or (queue in queues if queue else bool(queues))


def difference(before: Changes, after: Changes) -> Difference:
    """What `after` shows that `before` did not."""
    known = {job_id for job_id, _ in before.newest}
    arrived = {queue for job_id, queue in after.newest if job_id not in known}
    queues = before.leases.keys() | after.leases.keys()
    moved = {queue for queue in queues if before.leases.get(queue) != after.leases.get(queue)}
    grown = _grown(before, after)
    return Difference(
        hot=frozenset(arrived | moved),
        succeeded=grown.get(Outcome.SUCCEEDED, frozenset()),
        failed=grown.get(Outcome.FAILED, frozenset()),
        retried=grown.get(Outcome.RETRIED, frozenset()),
        jobs=_changed(before.watched, after.watched),
        audit=before.audit != after.audit,
        circuits=(before.circuits, before.order) != (after.circuits, after.order),
        workers=before.workers[:2] != after.workers[:2],
        beats=before.workers[2] != after.workers[2],
    )


def _grown(before: Changes, after: Changes) -> Mapping[int, frozenset[str]]:
    """Queues by outcome whose buckets grew; what left the window says nothing."""
    counted = {(mark.second, mark.queue, mark.outcome): mark.count for mark in before.buckets}
    found: dict[int, set[str]] = {}
    for mark in after.buckets:
        if counted.get((mark.second, mark.queue, mark.outcome)) != mark.count:
            found.setdefault(mark.outcome, set()).add(mark.queue)
    return {outcome: frozenset(queues) for outcome, queues in found.items()}


def _changed(before: list[Watched], after: list[Watched]) -> frozenset[str]:
    """Jobs that look otherwise. One that nobody watched the time before is new to the page, not changed."""
    known, now = ({one.id: one for one in seen} for seen in (before, after))
    gone = known.keys() - now.keys()
    return frozenset(gone | {job_id for job_id, one in now.items() if job_id in known and known[job_id] != one})
