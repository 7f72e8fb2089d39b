"""What do 1,000 children do to one database? Simulated with costs that were measured (simpy; extra `bench`).

python -m bench.simulate                                   tables for choices of poll_min, poll_max and prefetch
python -m bench.simulate --points mine.json --children 200 --rate 2000
python -m bench.simulate --measure --store sqlite          measure the costs of calls here, and print such a file
python -m bench.simulate --check                           the model against the throughput that was measured with its points
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import orjson

from bench.application import QUEUE
from bench.figures import percentile, shown
from bench.fleet import Choice, Cost, Fleet, Measured, Result, simulate
from bench.output import answer, note, say, table
from bench.paths import new_jobs
from bench.stage import staged
from bench.target import URL_VARIABLE, BenchError, Target
from chokaq.jobs.ids import new_id
from chokaq.store.records import Held, Registration, WorkerInfo

POINTS = Path(__file__).with_name("points.json")
SIZES = (10, 200)
"""Jobs per call of the two points through which each cost is drawn."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A throughput that was measured together with the costs."""

    children: int
    max_workers: int
    completed_per_second: float


class Points(msgspec.Struct, frozen=True, kw_only=True):
    """One measured store."""

    measured: Measured
    throughput: list[Point] = []
    when: str = ""
    """Date, and how busy the machine was."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print tables; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.measure:
            say(orjson.dumps([measure(options)], option=orjson.OPT_INDENT_2).decode())
            return 0
        points = read(options.points)
        found = [_check(each) for each in points] if options.check else [_choices(each, options) for each in points]
    except BenchError as error:
        note(f"bench: {error}")
        return 1
    if options.json:
        answer({"bench": "simulate", "stores": found})
    return 0


def read(path: Path) -> list[Points]:
    """The measured stores of a file. Raises BenchError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Points])
    except (OSError, msgspec.MsgspecError) as error:
        raise BenchError(f"{path}: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=Path, default=POINTS, help="costs of calls, measured")
    parser.add_argument("--children", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--rate", type=float, default=200.0, help="jobs per second, whole fleet")
    parser.add_argument("--handler", type=float, default=0.05, help="seconds of a handler, on average")
    parser.add_argument("--seconds", type=float, default=20.0, help="simulated time")
    parser.add_argument("--doorbell", type=float, default=0.0, help="share of jobs that ring a child of their own host")
    parser.add_argument("--cap", type=int, help="fleet_max_workers")
    parser.add_argument("--outage", type=float, nargs=2, metavar=("AT", "SECONDS"), help="the database is away")
    parser.add_argument("--poll-min", type=float, nargs="+", default=[0.05, 0.2])
    parser.add_argument("--poll-max", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--prefetch", type=int, nargs="+", default=[0, 20])
    parser.add_argument("--max-workers", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="compare the model with measured throughput")
    parser.add_argument("--measure", action="store_true", help="measure the costs of calls")
    parser.add_argument("--store", choices=["sqlite", "sqlserver"], default="sqlite")
    parser.add_argument("--database", help=f"for --measure; default: ${URL_VARIABLE}")
    parser.add_argument("--cycles", type=int, default=20, help="calls per point of --measure")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object on the last line")
    return parser


def _choices(points: Points, options: argparse.Namespace) -> dict[str, Any]:
    rows, results = [], []
    for children, poll_min, poll_max, prefetch in itertools.product(
        options.children, options.poll_min, options.poll_max, options.prefetch
    ):
        choice = Choice(poll_min=poll_min, poll_max=poll_max, prefetch=prefetch, max_workers=options.max_workers)
        fleet = Fleet(
            children=children,
            rate=options.rate,
            handler=options.handler,
            seconds=options.seconds,
            doorbell=options.doorbell,
            cap=options.cap,
            outage=None if options.outage is None else tuple(options.outage),
        )
        result = simulate(points.measured, choice, fleet, options.seed)
        rows.append((children, f"{poll_min:g}", f"{poll_max:g}", prefetch, *_cells(result)))
        results.append({"children": children, **msgspec.structs.asdict(choice), **result._asdict()})
    say(f"{points.measured.name} ({points.when}): {options.rate:g} jobs/s, handlers of {options.handler:g} s\n")
    head = (
        "children",
        "poll_min",
        "poll_max",
        "prefetch",
        "completed/s",
        "calls/s",
        "polls/s",
        "database",
        "p50 ms",
        "p99 ms",
        "left",
    )
    say(table((*head, "recovered s"), rows) + "\n")
    return {"store": points.measured.name, "results": results}


def _cells(result: Result) -> tuple[str, ...]:
    return (
        shown(result.per_second),
        shown(result.calls_per_second),
        shown(result.polls_per_second),
        f"{100 * result.load:.0f} %",
        shown(1000 * result.pickup_p50),
        shown(1000 * result.pickup_p99),
        str(result.backlog),
        "-" if result.recovered is None else shown(result.recovered),
    )


def _check(points: Points) -> dict[str, Any]:
    """The model at saturation, beside what was measured there."""
    rows, results = [], []
    for point in points.throughput:
        choice = Choice(max_workers=point.max_workers, prefetch=max(20, min(500, point.max_workers)))
        seconds = 3.0
        backlog = int(3 * seconds * point.completed_per_second) + 1_000
        fleet = Fleet(children=point.children, rate=0.0, handler=0.0, seconds=seconds, backlog=backlog)
        found = simulate(points.measured, choice, fleet).per_second
        ratio = found / point.completed_per_second
        rows.append(
            (point.children, point.max_workers, shown(point.completed_per_second), shown(found), f"{ratio:.2f}")
        )
        results.append({"children": point.children, "simulated": found, "ratio": ratio})
    say(f"{points.measured.name} ({points.when}), at saturation\n")
    say(table(("children", "max_workers", "measured/s", "simulated/s", "ratio"), rows) + "\n")
    return {"store": points.measured.name, "results": results}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Costs of the calls of a store, from one idle connection: a base and a price per job."""
    database = options.database or os.environ.get(URL_VARIABLE)
    with staged(options.store, database, repeat=1) as stage:
        target = stage.target()
        target.prepare()
        with stage.noise.around():
            times = {size: _calls(target, size, options.cycles) for size in SIZES}
        poll = _calls(target, 0, options.cycles)["fetch"]
        costs = {name: _line({size: times[size][name] for size in SIZES}) for name in ("fetch", "start", "archive")}
        when = f"{time.strftime('%Y-%m-%d')}, {stage.noise}"
    measured = Measured(
        name=options.store,
        servers=1 if options.store == "sqlite" else (os.cpu_count() or 1),
        poll=Cost(poll, 0.0),
        fetch=costs["fetch"],
        start=costs["start"],
        archive=costs["archive"],
        trip=0.0 if options.store == "sqlite" else 0.0002,
    )
    made: dict[str, Any] = msgspec.to_builtins(Points(measured=measured, when=when))
    return made


def _line(points: dict[int, float]) -> Cost:
    (few, low), (many, high) = points.items()
    per_job = max(0.0, (high - low) / (many - few))
    return Cost(max(0.0, low - few * per_job), per_job)


def _calls(target: Target, size: int, cycles: int) -> dict[str, float]:
    """Seconds of each call with `size` jobs; 0: of a fetch that finds nothing."""
    session = target.store.session()
    info = WorkerInfo(worker_id=new_id(), queue=QUEUE, host="bench", pid=1, version="0")
    worker: Registration = session.register_worker(info)
    times: dict[str, list[float]] = {"fetch": [], "start": [], "archive": []}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = call()
        times[name].append(time.perf_counter() - began)
        return found

    try:
        for request in range(1, cycles + 2):
            if size:
                session.enqueue_jobs(new_jobs(size))
            fetch = timed("fetch", partial(session.fetch_jobs, worker, request, size or 1))
            held = [Held(job.id, job.lease) for job in fetch.jobs]
            if held:
                timed("start", partial(session.start_jobs, worker, held))
                timed("archive", partial(session.archive_succeeded, worker, held))
    finally:
        session.close()
    # The first call prepares: it is no sample. Others of this host disturb a call, nobody makes one faster: the lower quartile.
    return {name: percentile(found[1:], 0.25) for name, found in times.items() if found}


if __name__ == "__main__":
    sys.exit(main())
