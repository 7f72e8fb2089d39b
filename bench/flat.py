"""Does the cost of a fetch and of a settlement grow with what else is in the database? (C32)

Two databases, a small and a large one, alike but for the rows of one kind. Both are worked on in turn, call by call, so that the
machine's noise meets both alike; the ratio of the medians is the answer.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench.application import QUEUE
from bench.figures import spread
from bench.output import note, say, table
from bench.stage import Stage
from bench.target import SCHEMA, BenchError, Rows, Target
from chokaq.jobs.ids import new_id
from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.protocol import Session
from chokaq.store.records import Failure, Held, Registration, WorkerInfo

OTHERS = [f"other-{number}" for number in range(10)]
WARM_CYCLES = 3

KINDS: dict[str, Callable[[int], Rows]] = {
    "pending": lambda count: Rows("JobsHot", count, [QUEUE]),
    "scheduled": lambda count: Rows("JobsHot", count, [QUEUE], priority=1_000, due_in_days=400),
    "other queues": lambda count: Rows("JobsHot", count, OTHERS),
    "archived": lambda count: Rows("JobsArchive", count, [QUEUE]),
    "dlq": lambda count: Rows("JobsDLQ", count, [QUEUE]),
}
"""What is there in bulk. Scheduled rows have a higher priority than the work: they must not stand in its way."""


class Side(NamedTuple):
    """One of the two databases at work."""

    session: Session
    worker: Registration
    idle: Registration
    times: dict[str, list[float]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--rows", type=int, nargs=2, default=[10_000, 1_000_000], metavar=("SMALL", "LARGE"))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="what is there in bulk")
    parser.add_argument("--batch", type=int, default=50, help="jobs a call")
    parser.add_argument(
        "--cycles", type=int, default=30, help="measured cycles (fetch, start, settle) per kind and repeat"
    )
    parser.add_argument("--update-statistics", action="store_true", help="tell the planner of what was loaded")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """Kind by kind."""
    names = (f"{SCHEMA}_small", f"{SCHEMA}_large")
    kinds: dict[str, dict[str, Any]] = {}
    statistics = "not updated after the bulk load"
    for kind in options.kinds:
        targets = [stage.target(name) for name in names]
        cycles = WARM_CYCLES + options.cycles * stage.repeat
        for target, count in zip(targets, options.rows, strict=True):
            note(f"{kind}: loading {count:,} rows")
            began = time.monotonic()
            target.prepare()
            target.load(KINDS[kind](count), "B")
            target.load(Rows("JobsHot", cycles * options.batch, [QUEUE]), "W")
            if options.update_statistics:
                statistics = target.update_statistics()
            note(f"{kind}: loaded in {time.monotonic() - began:.1f} s; statistics {statistics}")
        kinds[kind] = _measure(stage, kind, targets, cycles, options.batch)
        for target in targets:
            target.close()
    return _report(stage, options, kinds, statistics)


def _measure(stage: Stage, kind: str, targets: list[Target], cycles: int, batch: int) -> dict[str, Any]:
    with _side(targets[0]) as small, _side(targets[1]) as large:
        with stage.noise.around():
            for cycle in range(1, cycles + 1):
                for side in (small, large):
                    _cycle(side, cycle, batch, fail=kind == "dlq")
        ratios, costs = {}, {}
        for name, times in small.times.items():
            low, high = (spread(side[WARM_CYCLES:]).median for side in (times, large.times[name]))
            ratios[name], costs[name] = high / low, {"small_ms": 1000 * low, "large_ms": 1000 * high}
        return {"ratio": ratios, "cost": costs}


def _cycle(side: Side, request: int, batch: int, *, fail: bool) -> None:
    """One poll of an empty queue, then one set through its life."""
    session, worker = side.session, side.worker
    _time(side, "poll", lambda: session.fetch_jobs(side.idle, request, batch))
    fetch = _time(side, "fetch", lambda: session.fetch_jobs(worker, request, batch))
    held = [Held(job.id, job.lease) for job in fetch.jobs]
    if len(held) != batch:
        raise BenchError(f"the fetch brought {len(held)} of {batch} jobs")
    _time(side, "start", lambda: session.start_jobs(worker, held))
    if fail:
        failures = [Failure(job.id, job.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR) for job in held]
        answers = _time(side, "settle", lambda: session.archive_failed(worker, failures))
    else:
        answers = _time(side, "settle", lambda: session.archive_succeeded(worker, held))
    if not all(answers):
        raise BenchError("a settlement was answered stale")


def _time(side: Side, name: str, call: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    answer = call()
    side.times.setdefault(name, []).append(time.perf_counter() - began)
    return answer


@contextmanager
def _side(target: Target) -> Iterator[Side]:
    session = target.store.session()
    try:
        workers = [
            session.register_worker(WorkerInfo(worker_id=new_id(), queue=queue, host="bench", pid=1, version="0"))
            for queue in (QUEUE, "empty")
        ]
        yield Side(session, workers[0], workers[1], {})
    finally:
        session.close()


def _report(
    stage: Stage, options: argparse.Namespace, kinds: dict[str, dict[str, Any]], statistics: str
) -> dict[str, Any]:
    small, large = options.rows
    names = list(next(iter(kinds.values()))["ratio"])
    say(f"flat, {stage.kind}: {large:,} rows against {small:,}, {options.batch} jobs a call, statistics {statistics}\n")
    head = ("rows of", *(f"{name} ms" for name in names), *(f"{name} ratio" for name in names))
    rows = []
    for kind, found in kinds.items():
        costs = [f"{cost['small_ms']:.2f} → {cost['large_ms']:.2f}" for cost in found["cost"].values()]
        rows.append((kind, *costs, *(f"{ratio:.2f}" for ratio in found["ratio"].values())))
    say(table(head, rows))
    worst = max(ratio for found in kinds.values() for ratio in found["ratio"].values())
    say(f"\nworst ratio: {worst:.2f}\n\n{stage.noise}")
    return stage.result(
        rows=list(options.rows), batch=options.batch, statistics=statistics, worst_ratio=worst, kinds=kinds
    )
