"""Completed jobs per second, start to archive, of real workers; round trips and CPU per job; the share of the bare ceiling."""

import argparse
import time
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench import calls
from bench.ceiling import Sizes, open_ceiling
from bench.figures import rate_after, spread
from bench.fill import fill
from bench.output import note, say, table
from bench.processes import server_cpu
from bench.record import Log
from bench.stage import Stage, medians, spreads
from bench.target import BenchError, Target
from bench.wire import Wire
from bench.workers import Worker

WARM_SHARE = 0.1
"""Jobs left out of every rate: processes are starting up meanwhile."""


class Load(NamedTuple):
    """What one run is about."""

    jobs: int
    children: int = 1
    queue: Mapping[str, object] = MappingProxyType({})
    """Options of the queue; none: the defaults."""
    timeout: float = 600.0
    """Seconds after which it is given up."""


class Found(NamedTuple):
    """All that was measured."""

    load: Load
    runs: dict[int, list[dict[str, Any]]]
    """By number of children."""
    ceilings: list[float]
    sizes: Sizes | None
    counted: dict[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--jobs", type=int, help="jobs per run (default 20,000; SQL Server 10,000)")
    parser.add_argument("--children", type=int, nargs="+", default=[1, 2], help="numbers of child processes to measure")
    parser.add_argument("--max-workers", type=int, help="handlers at once in a child (default: the product's default)")
    parser.add_argument("--ceiling", action="store_true", help="also the bare procedures with the same batch sizes")
    parser.add_argument("--batch", type=int, help="ceiling only: this batch size instead of the worker's own")
    parser.add_argument(
        "--no-count", action="store_true", help="leave out the counted run (calls and messages per job)"
    )
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds after which a run is given up")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """Timed runs, interleaved; one counted run; the ceiling when asked for."""
    target = stage.target()
    queue = {"max_workers": options.max_workers} if options.max_workers else {}
    load = Load(options.jobs or (20_000 if stage.kind == "sqlite" else 10_000), 1, queue, options.timeout)
    counted = {} if options.no_count and not options.ceiling else count(stage, target, load)
    own: Sizes | None = counted.pop("sizes", None)
    sizes = None if not options.ceiling else Sizes(*[options.batch] * 3) if options.batch else own
    runs: dict[int, list[dict[str, Any]]] = {children: [] for children in options.children}
    ceilings: list[float] = []
    for turn in range(stage.repeat):
        for children, done in runs.items():
            note(f"run {turn + 1}/{stage.repeat}: {load.jobs:,} jobs, {children} child(ren)")
            with stage.noise.around():
                done.append(timed(stage, target, load._replace(children=children)))
        if sizes is not None:
            note(f"run {turn + 1}/{stage.repeat}: ceiling at {sizes}")
            with stage.noise.around():
                ceilings.append(ceiling(target, load.jobs, sizes))
    return _report(stage, Found(load, runs, ceilings, sizes, counted))


def timed(stage: Stage, target: Target, load: Load) -> dict[str, Any]:
    """One run of a worker over a filled queue."""
    target.prepare()
    fill(target, load.jobs)
    log = Log(stage.folder / "records")
    server_before = None if target.port is None else server_cpu(target.port)
    with Worker(target.settings, stage.folder, children=load.children, options=load.queue, log=log.path) as worker:
        _wait(worker, log, max(1, round(WARM_SHARE * load.jobs)), load.timeout)
        warm, cpu_warm = len(log), worker.cpu()
        _wait(worker, log, load.jobs, load.timeout)
        seen, cpu_end = len(log), worker.cpu()
        drained(target, load.timeout)
    server = None if target.port is None else server_cpu(target.port)
    timeline = target.finished()
    result = {
        "completed_per_second": rate_after(timeline, WARM_SHARE),
        "cpu_us_per_job": 1e6 * (cpu_end - cpu_warm) / max(1, seen - warm),
        "seconds": timeline[-1][0] - timeline[0][0],
        "lost": load.jobs - sum(completed for _, completed in timeline),
        "repeated": repeated(log),
    }
    if server is not None and server_before is not None:
        result["server_cpu_us_per_job"] = 1e6 * (server - server_before) / load.jobs
    return result


def count(stage: Stage, target: Target, load: Load) -> dict[str, Any]:
    """One run that is counted and not timed: store calls from inside, client messages on the wire."""
    note(f"counted run: {load.jobs:,} jobs, 1 child")
    target.prepare()
    fill(target, load.jobs)
    log = Log(stage.folder / "records")
    with ExitStack() as open_things:
        place, wire = target.settings, None
        if target.port is not None:
            host = urlsplit(target.settings.url).hostname or "127.0.0.1"
            wire = open_things.enter_context(Wire(host, target.port))
            place = target.through(wire.port)
        worker = open_things.enter_context(Worker(place, stage.folder, options=load.queue, log=log.path, calls=True))
        assert worker.counts_in is not None
        _wait(worker, log, 1, load.timeout)
        boot = wire.counts().total() if wire is not None else 0
        _wait(worker, log, load.jobs, load.timeout)
        drained(target, load.timeout)
        counts = calls.read(worker.counts_in)
        messages = wire.counts() if wire is not None else None
    made = calls.total(counts)
    batches = {name: calls.batch(counts, name) for name in ("fetch_jobs", "start_jobs", "archive_succeeded")}
    result: dict[str, Any] = {
        "calls_per_job": made / load.jobs,
        "batch": batches,
        "sizes": Sizes.of(*batches.values()),
        "round_trips_per_job": made / load.jobs,
    }
    if messages is not None:
        result |= {
            "messages": dict(messages),
            "boot_messages": boot,
            "round_trips_per_job": messages.total() / load.jobs,
            "round_trips_per_job_after_boot": (messages.total() - boot) / load.jobs,
        }
    return result


def ceiling(target: Target, jobs: int, sizes: Sizes) -> float:
    """One run of the bare procedures over a filled queue; completed jobs per second."""
    target.prepare()
    fill(target, jobs)
    bare = open_ceiling(target)
    try:
        rate = bare.drain(sizes)
    finally:
        bare.close()
    if target.standing().archived != jobs:
        raise BenchError(f"the ceiling archived {target.standing()} of {jobs} jobs: it does not do what the store does")
    return rate


def drained(target: Target, timeout: float) -> None:
    """Wait until the store has nothing of the queue in Hot."""
    deadline = time.monotonic() + timeout
    while not target.is_drained():
        if time.monotonic() > deadline:
            raise BenchError(f"jobs are left after {timeout:g} s: {target.standing()}")
        time.sleep(0.05)


def repeated(log: Log) -> int:
    """Starts beyond the first of each job."""
    numbers = [mark.number for mark in log.marks() if not mark.is_end]
    return len(numbers) - len(set(numbers))


def _wait(worker: Worker, log: Log, records: int, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not log.wait(records, 1.0):
        worker.check()
        if time.monotonic() > deadline:
            raise BenchError(f"only {len(log)} of {records} jobs began within {timeout:g} s: see {worker.output}")


def _report(stage: Stage, found: Found) -> dict[str, Any]:
    rows, by_children = [], {}
    for children, done in found.runs.items():
        share = [run["completed_per_second"] / bare for run, bare in zip(done, found.ceilings, strict=False)]
        figures: dict[str, Any] = {name: medians(done, name).median for name in done[0]}
        if share:
            figures["share_of_ceiling"] = spread(share).median
        rows.append(
            (
                children,
                medians(done, "completed_per_second"),
                f"{100 * spread(share).median:.0f} %" if share else "-",
                medians(done, "cpu_us_per_job"),
                medians(done, "server_cpu_us_per_job") if "server_cpu_us_per_job" in figures else "-",
                max(run["lost"] for run in done),
                max(run["repeated"] for run in done),
            )
        )
        by_children[children] = figures | {"spread": spreads(done, "completed_per_second", "cpu_us_per_job")}
    max_workers = found.load.queue.get("max_workers")
    say(f"throughput, {stage.kind}: {found.load.jobs:,} no-op jobs, max_workers {max_workers or 'by default'}\n")
    head = ("children", "completed/s", "of ceiling", "worker us/job", "server us/job", "lost", "repeated")
    say(table(head, rows))
    if found.ceilings:
        say(f"\nceiling, one connection, {found.sizes}: {spread(found.ceilings)} jobs/s")
    if found.counted:
        sets = ", ".join(f"{name} {size:.0f}" for name, size in found.counted["batch"].items())
        say(f"\ncounted run: {found.counted['round_trips_per_job']:.3f} round trips per job; jobs per call: {sets}")
    say(f"\n{stage.noise}")
    first = next(iter(by_children.values()))
    figures = {
        "jobs": found.load.jobs,
        "max_workers": max_workers,
        "completed_per_second": first["completed_per_second"],
        "cpu_us_per_job": first["cpu_us_per_job"],
        "lost": max(run["lost"] for done in found.runs.values() for run in done),
        "repeated": max(run["repeated"] for done in found.runs.values() for run in done),
        "children": by_children,
        **found.counted,
    }
    if found.ceilings and found.sizes is not None:
        figures |= {
            "share_of_ceiling": first["share_of_ceiling"],
            "ceiling_per_second": spread(found.ceilings).median,
            "ceiling_sizes": found.sizes._asdict(),
        }
    return stage.result(**figures)
