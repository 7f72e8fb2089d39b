"""The demo's verdict: every job against what the SMTP server, the HTTP endpoint and the report folder really received. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from chokaq.lifecycle.states import JobStatus


class JobFate(msgspec.Struct, frozen=True, kw_only=True):
    """How one job ended, by the store."""

    id: str
    status: JobStatus | None
    """None: the store does not know it."""
    lag_ms: float | None = None
    """Due to (last) start."""
    crashed: bool = False
    """The killed child was running it."""


class QueueAccount(msgspec.Struct, kw_only=True):
    """One line of the final table."""

    queue: str
    enqueued: int = 0
    succeeded: int = 0
    retried: int = 0
    failed: int = 0
    zombie: int = 0
    unfinished: int = 0
    received: int = 0
    """Different jobs that arrived outside."""
    duplicates: int = 0
    """Arrivals beyond the first of a job."""
    unexplained: int = 0
    """Duplicates of jobs that the killed child was not running."""
    lost: int = 0
    """Not in the store at all, or succeeded by the store without having arrived outside."""
    lag_p50_ms: float = 0.0
    lag_p99_ms: float = 0.0
    jobs_per_second: float = 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie (nearest rank); 0.0 for none."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def account(
    queue: str, fates: Sequence[JobFate], arrivals: Mapping[str, int], *, retried: int, seconds: float
) -> QueueAccount:
    """Account for a queue's jobs. `arrivals`: how often each job's effect arrived outside; `seconds`: how long the run took."""
    line = QueueAccount(queue=queue, enqueued=len(fates), retried=retried)
    for fate in fates:
        arrived = arrivals.get(fate.id, 0)
        line.received += arrived > 0
        line.duplicates += max(0, arrived - 1)
        if arrived > 1 and not fate.crashed:
            line.unexplained += arrived - 1
        match fate.status:
            case JobStatus.SUCCEEDED:
                line.succeeded += 1
                line.lost += arrived == 0
            case JobStatus.ZOMBIE:
                line.zombie += 1
            case JobStatus.FAILED | JobStatus.CANCELLED | JobStatus.DROPPED:
                line.failed += 1
            case None:
                line.lost += 1
            case _:
                line.unfinished += 1
    lags = sorted(fate.lag_ms for fate in fates if fate.lag_ms is not None)
    line.lag_p50_ms, line.lag_p99_ms = round(percentile(lags, 0.5), 1), round(percentile(lags, 0.99), 1)
    line.jobs_per_second = round((line.succeeded + line.failed) / seconds, 1) if seconds > 0 else 0.0
    return line
