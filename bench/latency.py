"""Pickup latency: jobs one at a time, the worker idle, on the same host; and the round trips of jobs that come singly."""

import argparse
import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

from bench import calls
from bench.application import QUEUE, Noop, app
from bench.figures import percentile
from bench.fill import client
from bench.output import note, say, table
from bench.record import Log
from bench.stage import Stage, medians, spreads
from bench.target import BenchError, Target
from bench.throughput import drained
from bench.wire import Wire
from bench.workers import Worker
from chokaq.store.doorbell import Doorbell
from chokaq.store.open import open_store

WARM_JOBS = 10
REST = 2.0
"""Seconds between two bursts, so that idle polling has backed off again."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--jobs", type=int, default=300, help="jobs per burst")
    parser.add_argument("--every", type=float, default=0.02, help="seconds between two jobs")
    parser.add_argument("--rest", type=float, default=REST, help="idle seconds before each burst")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """One worker, several bursts; then one counted burst."""
    target = stage.target()
    target.prepare()
    log = Log(stage.folder / "records")
    bursts = []
    with client(target), Worker(target.settings, stage.folder, log=log.path) as worker:
        worker.wait_ready()
        _burst(log, 0, WARM_JOBS, 0.0)
        for turn in range(stage.repeat):
            note(f"burst {turn + 1}/{stage.repeat}")
            time.sleep(options.rest)
            with stage.noise.around():
                bursts.append(_burst(log, 1_000_000 * (turn + 1), options.jobs, options.every))
    counted = _count(stage, target, options)
    rows = [(f"{name} ms", medians(bursts, name)) for name in bursts[0]]
    say(f"latency, {stage.kind}: {options.jobs} jobs, one each {1000 * options.every:g} ms, worker idle, same host\n")
    say(table(("figure", "median (spread)"), rows))
    say(f"\nround trips per job, coming singly: {counted['round_trips_per_job']:.2f}")
    say(f"of {counted['calls_per_job']:.2f} calls {counted['polls_per_job']:.2f} were polls that found nothing")
    say(f"\n{stage.noise}")
    middle = {name: medians(bursts, name).median for name in bursts[0]}
    return stage.result(
        jobs=options.jobs,
        every=options.every,
        pickup_ms={"p50": middle["p50"], "p99": middle["p99"], "max": middle["max"], "first": middle["first"]},
        pickup_after_commit_ms={"p50": middle["p50 after commit"], "p99": middle["p99 after commit"]},
        spread=spreads(bursts, "p50", "p99"),
        **counted,
    )


def _burst(log: Log, base: int, jobs: int, every: float) -> dict[str, float]:
    """Enqueue jobs one after the other; milliseconds from each call to its handler."""
    before = len(log)
    asked, accepted = {}, {}
    due = time.monotonic()
    for number in range(base, base + jobs):
        asked[number] = time.monotonic()
        app.enqueue_sync(Noop(number))
        accepted[number] = time.monotonic()
        due += every
        time.sleep(max(0.0, due - time.monotonic()))
    if not log.wait(before + jobs, 60.0):
        raise BenchError(f"only {len(log) - before} of {jobs} jobs began")
    began = {mark.number: mark.at for mark in reversed(log.marks(before))}
    waits = [1000 * (began[number] - at) for number, at in asked.items()]
    late = [1000 * (began[number] - at) for number, at in accepted.items()]
    return {
        "p50": percentile(waits, 0.5),
        "p99": percentile(waits, 0.99),
        "max": max(waits),
        "first": waits[0],
        "p50 after commit": percentile(late, 0.5),
        "p99 after commit": percentile(late, 0.99),
    }


def _count(stage: Stage, target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """A burst whose calls and messages are counted: what happens from the first job to the last archive."""
    note("counted burst")
    target.prepare()
    log = Log(stage.folder / "records")
    with ExitStack() as open_things:
        place, wire = target.settings, None
        if target.port is not None:
            host = urlsplit(target.settings.url).hostname or "127.0.0.1"
            wire = open_things.enter_context(Wire(host, target.port))
            place = target.through(wire.port)
        open_things.enter_context(client(target))
        worker = open_things.enter_context(Worker(place, stage.folder, log=log.path, calls=True))
        assert worker.counts_in is not None
        worker.wait_ready()
        time.sleep(options.rest)
        # Behind a proxy the worker's database has another name, and so has its doorbell. Without one the application has rung it.
        bell = Doorbell(open_store(place).identity) if wire is not None else None
        before = calls.read(worker.counts_in)
        messages = wire.counts() if wire is not None else None
        due = time.monotonic()
        for number in range(options.jobs):
            app.enqueue_sync(Noop(number))
            if bell is not None:
                bell.ring(QUEUE)
            due += options.every
            time.sleep(max(0.0, due - time.monotonic()))
        log.wait(options.jobs, 60.0)
        drained(target, 60.0)
        made = calls.since(before, calls.read(worker.counts_in))
        result: dict[str, Any] = {
            "calls_per_job": calls.total(made) / options.jobs,
            "polls_per_job": made["fetch_jobs"].empty / options.jobs,
            "calls": {name: count.calls for name, count in made.items() if count.calls},
        }
        result["round_trips_per_job"] = result["calls_per_job"]
        if wire is not None and messages is not None:
            sent = wire.counts()
            sent.subtract(messages)
            result["messages"] = {kind: number for kind, number in sent.items() if number}
            result["round_trips_per_job"] = sent.total() / options.jobs
    return result
