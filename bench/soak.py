"""Minutes at a steady rate, with deploys in between: does memory grow, does latency drift, does anything go wrong? (C19, C27)"""

import argparse
import math
import signal
import time
from typing import Any

from bench.application import Noop, app
from bench.figures import percentile, slope
from bench.fill import client
from bench.output import note, say, table
from bench.processes import private_mb, title
from bench.record import Log
from bench.stage import Stage
from bench.throughput import drained, repeated
from bench.workers import Worker

TICK = 0.05
WARM_SHARE = 0.1
"""Samples of each process left out of the slope: caches and buffers fill meanwhile."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=200.0, help="jobs per second")
    parser.add_argument("--children", type=int, default=2)
    parser.add_argument("--sample", type=float, default=10.0, help="seconds between two looks")
    parser.add_argument(
        "--deploy-every", type=float, default=0.0, help="minutes between two rolling restarts (default: none)"
    )


class Sample:
    """One look."""

    def __init__(self, at: float, worker: Worker, latencies: list[float]) -> None:
        self.at = at
        self.memory = {(_role(pid), pid): private_mb(pid) for pid in (process.pid for process in worker.processes())}
        self.p50 = percentile(latencies, 0.5) if latencies else float("nan")
        self.p99 = percentile(latencies, 0.99) if latencies else float("nan")

    @property
    def total_mb(self) -> float:
        """Private memory of the whole program."""
        return sum(self.memory.values())


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """One run."""
    target = stage.target()
    target.prepare()
    log = Log(stage.folder / "records")
    with (
        client(target),
        Worker(target.settings, stage.folder, children=options.children, log=log.path) as worker,
    ):
        worker.wait_ready()
        with stage.noise.around():
            samples, sent, deploys = _drive(worker, log, options)
        log.wait(sent, 120.0)
        drained(target, 120.0)
        # An outage that was waited out is a warning and a warning; what an operator must look into is an error.
        troubles = worker.events("store_unavailable") + worker.events(levels=("error", "critical"))
    left = target.standing()
    growth = _growth(samples)
    quarter = max(1, len(samples) // 4)
    early, late = ([sample.p50 for sample in part] for part in (samples[:quarter], samples[-quarter:]))
    drift = percentile(late, 0.5) / percentile(early, 0.5)
    say(
        f"soak, {stage.kind}: {options.minutes:g} min at {options.rate:g} jobs/s, {options.children} children,"
        f" {deploys} deploy(s)\n"
    )
    rows = [
        (f"{s.at:.0f}", f"{s.total_mb:.1f}", f"{s.p50:.1f}", f"{s.p99:.1f}")
        for s in samples[:: max(1, len(samples) // 20)]
    ]
    say(table(("second", "private MB", "p50 ms", "p99 ms"), rows))
    say("\nmemory slope MB/h: " + ", ".join(f"{role} {rise:+.2f}" for role, rise in growth.items()))
    say(f"latency drift (p50 of the last quarter to the first): {drift:.2f}; troubles logged: {len(troubles)}")
    say(f"\n{stage.noise}")
    return stage.result(
        minutes=options.minutes,
        rate=options.rate,
        deploys=deploys,
        completed_per_second=left.archived / (60 * options.minutes),
        memory_mb=samples[-1].total_mb,
        memory_slope_mb_per_hour=growth,
        latency_drift=drift,
        pickup_ms={"p50": percentile([s.p50 for s in samples], 0.5), "p99": percentile([s.p99 for s in samples], 0.5)},
        lost=sent - left.archived - left.dead,
        dead_lettered=left.dead,
        repeated=repeated(log),
        errors=len(troubles),
        error_events=sorted({str(event.get("event")) for event in troubles}),
    )


def _growth(samples: list[Sample]) -> dict[str, float]:
    """Rise of the memory of each role, in MB an hour: within its processes, not from one to the next that took its place."""
    series: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for sample in samples:
        for (role, pid), mb in sample.memory.items():
            series.setdefault(role, {}).setdefault(pid, []).append((sample.at / 3600, mb))
    return {
        role: slope([points[math.ceil(WARM_SHARE * len(points)) :] for points in by_process.values()])
        for role, by_process in series.items()
    }


def _drive(worker: Worker, log: Log, options: argparse.Namespace) -> tuple[list[Sample], int, int]:
    """Enqueue at the rate, look and deploy now and then; the samples, how many jobs were sent, how many deploys were made."""
    samples: list[Sample] = []
    asked: dict[int, float] = {}
    sent = read = deploys = 0
    began = time.monotonic()
    end, look = began + 60 * options.minutes, began + options.sample
    apart = 60 * options.deploy_every or math.inf
    while (now := time.monotonic()) < end:
        due = int((now - began) * options.rate) + 1
        if due > sent:
            asked.update((number, time.monotonic()) for number in range(sent, due))
            app.enqueue_many_sync([Noop(number) for number in range(sent, due)])
            sent = due
        if now >= look:
            worker.check()
            marks = log.marks(read)
            read += len(marks)
            waits = [1000 * (mark.at - asked.pop(mark.number)) for mark in marks if mark.number in asked]
            samples.append(Sample(now - began, worker, waits))
            note(f"{samples[-1].at:6.0f} s: {sent:,} sent, {samples[-1].total_mb:.1f} MB, p50 {samples[-1].p50:.1f} ms")
            look += options.sample
        if now >= began + apart * (deploys + 1) and end - now > apart / 2:
            worker.process.send_signal(signal.SIGUSR2)
            deploys += 1
        time.sleep(max(0.0, TICK - (time.monotonic() - now)))
    return samples, sent, deploys


def _role(pid: int) -> str:
    """What a process of the worker is, from its title."""
    return title(pid).removeprefix("chokaq: ") or str(pid)
