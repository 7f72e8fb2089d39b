"""Which queue gets one process more or fewer on TTIN and TTOU. A signal names no queue, so the load does. Pure."""

from collections.abc import Mapping, Sequence


def queue_to_grow(loads: Mapping[str, Sequence[int]]) -> str | None:
    """The queue with the most jobs (running and buffered) per process; equal loads: the first by name.

    `loads`: for every queue the jobs of each of its processes.
    """
    return max(sorted(loads), key=lambda queue: _per_process(loads[queue]), default=None)


def queue_to_shrink(loads: Mapping[str, Sequence[int]]) -> str | None:
    """The queue with the fewest jobs per process among those with more than one process; None when there is none."""
    shrinkable = sorted(queue for queue, jobs in loads.items() if len(jobs) > 1)
    return min(shrinkable, key=lambda queue: _per_process(loads[queue]), default=None)


def _per_process(jobs: Sequence[int]) -> float:
    return sum(jobs) / len(jobs) if jobs else 0.0
