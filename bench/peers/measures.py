"""The one method by which every system is measured."""

import time
from typing import Any

from bench.figures import percentile, rate_after
from bench.peers.system import System
from bench.target import BenchError

WARM_SHARE = 0.1
WARM_JOBS = 5
REST = 3.0
SINGLES = 500


def throughput(system: System, setup: str, jobs: int | None, timeout: float = 300.0) -> dict[str, Any]:
    """Completed jobs per second of a filled queue: by the handlers' records, from the tenth per cent to the last job."""
    count = jobs or int(system.setups[setup]["jobs"])
    singles = min(SINGLES, count // 4)
    system.ask("reset", setup=setup)
    system.log.path.write_bytes(b"")
    single = system.ask("singles", first=0, end=singles)["seconds"]
    filled = system.ask("fill", first=singles, end=count)
    system.settle()
    server = system.server_cpu()
    with system.working(setup) as programs:
        _wait(system, programs, count, timeout)
        left = system.wait_finished(30.0)
        cpu = programs.cpu()
    after = system.server_cpu()
    marks = sorted(mark.at for mark in system.log.marks())
    figures = {
        "completed_per_second": rate_after([(at, 1) for at in marks], WARM_SHARE),
        "enqueue_single_per_second": singles / single,
        "enqueue_per_second": (count - singles) / filled["seconds"],
        "bulk": filled["bulk"],
        "cpu_us_per_job": 1e6 * cpu / count,
        "unfinished": left,
    }
    if server is not None and after is not None:
        figures["server_cpu_us_per_job"] = 1e6 * (after - server) / count
    return figures


def latency(system: System, setup: str, jobs: int, every: float) -> dict[str, float]:
    """Milliseconds from the enqueue call to the handler, the worker idle."""
    system.ask("reset", setup=setup)
    system.log.path.write_bytes(b"")
    with system.working(setup) as programs:
        system.ask("fill", first=0, end=WARM_JOBS)
        _wait(system, programs, WARM_JOBS, 60.0)
        time.sleep(REST)
        asked = system.ask("burst", first=1_000, end=1_000 + jobs, every=every)["asked"]
        _wait(system, programs, WARM_JOBS + jobs, 120.0)
    began = {mark.number: mark.at for mark in reversed(system.log.marks())}
    waits = [1000 * (began[int(number)] - at) for number, at in asked.items()]
    return {"p50": percentile(waits, 0.5), "p99": percentile(waits, 0.99), "first": waits[0]}


def crash(system: System, setup: str, jobs: int, *, sleep: float = 0.005, watch: float = 60.0) -> dict[str, Any]:
    """SIGKILL to every process halfway through, started again at once, then watched."""
    system.ask("reset", setup=setup)
    system.log.path.write_bytes(b"")
    system.ask("fill", first=0, end=jobs)
    system.settle()
    with system.working(setup, sleep=sleep) as programs:
        # A handler leaves two records: as many as there are jobs means that half of them are through.
        _wait(system, programs, jobs, 120.0, tick=0.001)
        programs.kill()
    killed_at = time.monotonic()
    with system.working(setup, sleep=sleep):
        deadline = killed_at + watch
        finished: set[int] = set()
        while len(finished) < jobs and time.monotonic() < deadline:
            time.sleep(0.25)
            finished = {mark.number for mark in system.log.marks() if mark.is_end}
        left = system.ask("unfinished")["count"]
    marks = system.log.marks()
    starts = [mark.number for mark in marks if not mark.is_end]
    missing = jobs - len(finished)
    return {
        "finished": len(finished),
        "lost": max(0, missing - left),
        "left": left,
        "started_twice": len(starts) - len(set(starts)),
        "seconds": max(0.0, max(mark.at for mark in marks) - killed_at),
    }


def _wait(system: System, programs: Any, records: int, timeout: float, *, tick: float = 0.005) -> None:
    deadline = time.monotonic() + timeout
    while not system.log.wait(records, 1.0, tick=tick):
        if not programs.alive or time.monotonic() > deadline:
            what = "took too long" if programs.alive else "ended by itself"
            raise BenchError(
                f"{system.peer.label} {what}: {len(system.log)} of {records} records; see {system.folder / 'output'}"
            )
