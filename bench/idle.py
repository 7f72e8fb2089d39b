"""What a child costs that has nothing to do: CPU, calls to the store, private memory (with an empty application)."""

import argparse
import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

from bench import calls
from bench.output import note, say, table
from bench.processes import server_cpu
from bench.stage import Stage, medians, spreads
from bench.wire import Wire
from bench.workers import Worker


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--seconds", type=float, default=20.0, help="length of one sample")
    parser.add_argument("--settle", type=float, default=5.0, help="seconds between readiness and the first sample")
    parser.add_argument("--children", type=int, default=1)


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """One worker, several samples. The server's share is read before a proxy would disturb it: messages are counted afterwards."""
    target = stage.target()
    target.prepare()
    samples = []
    with Worker(
        target.settings, stage.folder, children=options.children, calls=True, app="bench.empty_application:app"
    ) as worker:
        worker.wait_ready()
        time.sleep(options.settle)
        for turn in range(stage.repeat):
            note(f"sample {turn + 1}/{stage.repeat}: {options.seconds:g} s")
            with stage.noise.around():
                samples.append(_sample(worker, options.seconds, target.port))
    messages = None if target.port is None else _messages(stage, options)
    say(f"idle, {stage.kind}: {options.children} child(ren), empty application, {options.seconds:g} s a sample\n")
    rows: list[tuple[str, object]] = [(name.replace("_", " "), medians(samples, name)) for name in samples[0]]
    if messages is not None:
        rows.append(("messages per second, whole program", f"{messages:.2f}"))
    say(table(("figure", "median (spread)"), rows))
    say(f"\n{stage.noise}")
    figures = {name: medians(samples, name).median for name in samples[0]}
    if messages is not None:
        figures["messages_per_second"] = messages
    return stage.result(**figures, spread=spreads(samples, "cpu_percent", "calls_per_second", "memory_mb"))


def _sample(worker: Worker, seconds: float, port: int | None) -> dict[str, float]:
    assert worker.counts_in is not None
    children = len(worker.children())
    counted, child, program = calls.read(worker.counts_in), worker.children_cpu(), worker.cpu()
    server = None if port is None else server_cpu(port)
    began = time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    made = calls.since(counted, calls.read(worker.counts_in))
    figures = {
        "cpu_percent": 100 * (worker.children_cpu() - child) / elapsed / children,
        "program_cpu_percent": 100 * (worker.cpu() - program) / elapsed,
        "calls_per_second": calls.total(made) / elapsed / children,
        "memory_mb": max(worker.memory_mb()),
    }
    if port is not None and server is not None:
        figures["server_cpu_percent"] = 100 * ((server_cpu(port) or server) - server) / elapsed
    return figures


def _messages(stage: Stage, options: argparse.Namespace) -> float:
    """Client messages a second of an idle program, maintenance included."""
    note("counting messages")
    target = stage.target()
    with ExitStack() as open_things:
        assert target.port is not None
        wire = open_things.enter_context(Wire(urlsplit(target.settings.url).hostname or "127.0.0.1", target.port))
        worker = open_things.enter_context(
            Worker(
                target.through(wire.port), stage.folder, children=options.children, app="bench.empty_application:app"
            )
        )
        worker.wait_ready()
        time.sleep(options.settle)
        before, began = wire.counts().total(), time.monotonic()
        time.sleep(options.seconds)
        return (wire.counts().total() - before) / (time.monotonic() - began)
