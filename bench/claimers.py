"""Contention: how many jobs per second 1, 2, 4 … 64 claimers complete together (C34)."""

import argparse
import subprocess
import sys
from typing import Any

import orjson

from bench.fill import fill
from bench.output import note, say, table
from bench.stage import Stage, medians, spreads
from bench.target import BenchError, Target
from bench.throughput import Load, timed
from bench.workers import ROOT

FEW = 8
"""The best of up to so many claimers is what the largest number is measured against."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--jobs", type=int, help="jobs per run (default 60,000; SQL Server 10,000)")
    parser.add_argument("--claimers", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument(
        "--bare", action="store_true", help="sessions in a loop instead of children of one `chokaq worker`"
    )
    parser.add_argument("--batch", type=int, default=20, help="jobs a call (bare)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds after which a run is given up")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """All numbers in turn, again and again."""
    target = stage.target()
    jobs = options.jobs or (60_000 if stage.kind == "sqlite" else 10_000)
    runs: dict[int, list[dict[str, Any]]] = {count: [] for count in options.claimers}
    for turn in range(stage.repeat):
        for count, done in runs.items():
            note(f"run {turn + 1}/{stage.repeat}: {count} claimer(s), {jobs:,} jobs")
            with stage.noise.around():
                if options.bare:
                    rate = together(target, jobs, count, options.batch, options.timeout)
                else:
                    load = Load(jobs, count, {}, options.timeout)
                    rate = timed(stage, target, load)["completed_per_second"]
            done.append({"rate": rate})
    rates = {count: medians(done, "rate").median for count, done in runs.items()}
    best = max((rate for count, rate in rates.items() if count <= FEW), default=max(rates.values()))
    most = max(rates)
    what = f"bare sessions, {options.batch} jobs a call" if options.bare else "children of one worker"
    say(f"claimers, {stage.kind}: {what}\n")
    rows = [(count, medians(done, "rate"), f"{rates[count] / best:.2f}") for count, done in runs.items()]
    say(table(("claimers", "completed/s", f"against the best of 1-{FEW}"), rows))
    say(f"\n{stage.noise}")
    return stage.result(
        jobs=jobs,
        batch=options.batch if options.bare else None,
        bare=options.bare,
        completed_per_second=rates,
        claimers_most=most,
        ratio=rates[most] / best,
        spread={count: spreads(done, "rate")["rate"] for count, done in runs.items()},
    )


def together(target: Target, jobs: int, count: int, batch: int, timeout: float) -> float:
    """Jobs per second that `count` bare claimers complete, from the first's beginning to the last archive."""
    target.prepare()
    fill(target, jobs)
    place = target.settings
    command = [sys.executable, "-m", "bench.claimer", place.url, place.schema, str(batch)]
    programs = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(count)
    ]
    try:
        for program in programs:
            assert program.stdout is not None
            if program.stdout.readline() != "ready\n":
                raise BenchError("a claimer did not start: see the message above")
        for program in programs:
            assert program.stdin is not None
            program.stdin.write("go\n")
            program.stdin.flush()
        answers = [orjson.loads(program.communicate(timeout=timeout)[0]) for program in programs]
    finally:
        for program in programs:
            if program.poll() is None:
                program.kill()
                program.wait()
            for pipe in (program.stdin, program.stdout):
                if pipe is not None and not pipe.closed:
                    pipe.close()
    done = sum(answer["done"] for answer in answers)
    if done != jobs:
        raise BenchError(f"{count} claimers completed {done} of {jobs} jobs")
    began, ended = min(answer["began"] for answer in answers), max(answer["ended"] for answer in answers)
    return float(done / (ended - began))
