"""SIGKILL to a child halfway through, its supervisor alive: lost, repeated, dead-lettered, seconds until all is done."""

import argparse
import time
from typing import Any

from bench.fill import fill
from bench.output import note, say, table
from bench.record import Log
from bench.stage import Stage, medians, spreads
from bench.target import BenchError, Target
from bench.throughput import drained, repeated
from bench.workers import Worker


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--jobs", type=int, default=5_000)
    parser.add_argument("--sleep", type=float, default=0.005, help="seconds each handler takes")
    parser.add_argument("--children", type=int, default=1)
    parser.add_argument(
        "--on-crash", choices=["dead_letter", "retry"], default="dead_letter", help="the queue's policy"
    )
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds after which a run is given up")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """The same crash, several times."""
    target = stage.target()
    runs = []
    for turn in range(stage.repeat):
        note(f"run {turn + 1}/{stage.repeat}")
        with stage.noise.around():
            runs.append(_once(stage, target, options))
    say(f"crash, {stage.kind}: one of {options.children} child(ren) killed halfway through {options.jobs:,} jobs\n")
    rows = [[shown(run[name]) for name in runs[0]] for run in runs]
    say(table([name.replace("_", " ") for name in runs[0]], rows))
    say(f"\n{stage.noise}")
    figures: dict[str, Any] = {
        name: max(run[name] for run in runs)
        for name in ("lost", "repeated", "dead_lettered", "running_at_kill", "done_unsettled", "dead_unbegun")
    }
    return stage.result(
        jobs=options.jobs, **figures, seconds=medians(runs, "seconds").median, spread=spreads(runs, "seconds")
    )


def shown(value: float) -> str:
    """A cell."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _once(stage: Stage, target: Target, options: argparse.Namespace) -> dict[str, Any]:
    target.prepare()
    fill(target, options.jobs)
    log = Log(stage.folder / "records")
    with Worker(
        target.settings,
        stage.folder,
        children=options.children,
        options={"on_crash": options.on_crash} if options.on_crash != "dead_letter" else None,
        log=log.path,
        sleep=options.sleep,
    ) as worker:
        # A handler leaves two records: as many as there are jobs means that half of them are through.
        if not log.wait(options.jobs, options.timeout, tick=0.001):
            worker.check()
            raise BenchError(f"only {len(log)} of {options.jobs} records after {options.timeout:g} s")
        worker.kill_child()
        killed_at = time.monotonic()
        marks = log.marks()
        running = {mark.number for mark in marks if not mark.is_end} - {mark.number for mark in marks if mark.is_end}
        drained(target, options.timeout)
        seconds = time.monotonic() - killed_at
    left = target.standing()
    finished = {mark.number for mark in log.marks() if mark.is_end}
    return {
        "finished": len(finished),
        "archived": left.archived,
        "dead_lettered": left.dead,
        "lost": options.jobs - left.archived - left.dead - left.hot,
        "repeated": repeated(log),
        "running_at_kill": len(running),
        "done_unsettled": max(0, len(finished) - left.archived),
        # Started by the store's word, but their handlers had not begun.
        "dead_unbegun": max(0, options.jobs - left.archived - left.hot - len({mark.number for mark in log.marks()})),
        "seconds": seconds,
    }
