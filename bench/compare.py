"""chokaq beside other job systems: installed, started and measured by one method, in turn, in one run."""

import argparse
import datetime
import platform
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from bench import chart
from bench.figures import spread
from bench.output import note, say, table
from bench.peers import measures
from bench.peers.catalogue import PEERS, Peer, find
from bench.peers.services import Postgres, Redis
from bench.peers.system import System
from bench.stage import Stage
from bench.target import BenchError, Target, open_target
from chokaq.store.sqlserver.connecting import DEFAULT_PORT
from chokaq.store.url import DatabaseUrl

SETUPS = ("1p", "2p")
WHAT = ("throughput", "latency", "crash")
Runs = dict[tuple[str, str], list[dict[str, Any]]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    names = [peer.name for peer in PEERS]
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="SYSTEM", help=f"these systems only: {', '.join(names)}"
    )
    parser.add_argument("--setups", nargs="+", help="these set-ups only (default: 1p and 2p; `all`: every one)")
    parser.add_argument("--what", nargs="+", choices=WHAT, default=["throughput", "latency"])
    parser.add_argument("--jobs", type=int, help="jobs per throughput run (default: each system's own number)")
    parser.add_argument("--latency-jobs", type=int, default=300)
    parser.add_argument("--every", type=float, default=0.02, help="latency: seconds between two jobs")
    parser.add_argument("--crash-jobs", type=int, default=5_000)
    parser.add_argument("--watch", type=float, default=60.0, help="crash: seconds to watch after the kill")
    parser.add_argument("--out", type=Path, default=Path("docs/performance"), help="where table and chart are written")


def run(stage: Stage, options: argparse.Namespace) -> dict[str, Any]:
    """Everything, in turn; what cannot be had here is named and left out."""
    peers = [peer for peer in find(options.only) if peer.service != "tsql" or stage.database]
    if len(peers) < len(find(options.only)):
        note("left out: chokaq-sqlserver (no --database is given)")
    runs: dict[str, Runs] = {what: {} for what in options.what}
    missing: dict[str, str] = {}
    with _systems(stage, peers, missing) as systems:
        for turn in range(stage.repeat):
            for what in options.what:
                for system in systems:
                    for setup in _setups(system, options.setups if what == "throughput" else ["1p"]):
                        note(f"run {turn + 1}/{stage.repeat}: {what}, {system.peer.label} {setup}")
                        try:
                            with stage.noise.around():
                                figures = _measure(what, system, setup, options)
                        except BenchError as error:
                            note(f"left out: {error}")
                            missing[f"{system.peer.name} {setup} {what}"] = str(error).splitlines()[0]
                            continue
                        runs[what].setdefault((system.peer.name, setup), []).append(figures)
        versions = {system.peer.name: system.about["version"] for system in systems}
    _write(stage, options, runs, versions, missing)
    return stage.result(
        versions=versions,
        missing=missing,
        **{what: {" ".join(key): _medians(done) for key, done in found.items()} for what, found in runs.items()},
        **_ratios(runs.get("throughput", {})),
    )


def _measure(what: str, system: System, setup: str, options: argparse.Namespace) -> dict[str, Any]:
    if what == "throughput":
        return measures.throughput(system, setup, options.jobs)
    if what == "latency":
        return measures.latency(system, setup, options.latency_jobs, options.every)
    return measures.crash(system, setup, options.crash_jobs, watch=options.watch)


@contextmanager
def _systems(stage: Stage, peers: list[Peer], missing: dict[str, str]) -> Iterator[list[System]]:
    """Every system that can be had here, with the servers it needs."""
    with ExitStack() as open_things:
        servers: dict[str, Any] = {}
        for service, kind in (("postgres", Postgres), ("redis", Redis)):
            if any(peer.service == service for peer in peers):
                try:
                    servers[service] = open_things.enter_context(closing(kind()))
                except BenchError as error:
                    note(f"left out: {error}")
                    missing[service] = str(error)
        systems = []
        for peer in peers:
            if peer.service in ("postgres", "redis") and peer.service not in servers:
                missing[peer.name] = missing[peer.service]
                continue
            folder = stage.folder / peer.name
            try:
                if peer.module == "ourselves":
                    open_things.callback(_announce(stage, folder, peer).drop)
                system = System(
                    peer, folder, postgres=servers.get("postgres"), redis=servers.get("redis"), port=_port(stage, peer)
                )
            except BenchError as error:
                note(f"left out: {error}")
                missing[peer.name] = str(error).splitlines()[0]
                continue
            systems.append(open_things.enter_context(closing(system)))
        yield systems


def _announce(stage: Stage, folder: Path, peer: Peer) -> Target:
    """Tell our own driver which store it drives; the target, to be dropped at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = "sqlserver" if peer.service == "tsql" else "sqlite"
    place = folder / "target"
    place.write_text(f"{kind}\n{stage.database if kind == 'sqlserver' else ''}\n")
    place.chmod(0o600)
    target = open_target(kind, stage.database, folder)
    target.create()
    return target


def _port(stage: Stage, peer: Peer) -> int | None:
    if peer.service != "tsql" or not stage.database:
        return None
    return DatabaseUrl.parse(stage.database).port or DEFAULT_PORT


def _setups(system: System, wanted: list[str] | None) -> list[str]:
    chosen = list(system.setups) if wanted == ["all"] else wanted or list(SETUPS)
    return [setup for setup in chosen if setup in system.setups]


def _medians(done: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: spread([run[name] for run in done]).median for name in done[0] if name != "bulk"}


def _ratios(found: Runs) -> dict[str, Any]:
    """What the goals are about: our median over a peer's, both of this run."""
    rates = {key: _medians(done)["completed_per_second"] for key, done in found.items()}
    return {
        "ratios": {
            f"{ours} {setup} : {other}": rate / rates[other, setup]
            for (ours, setup), rate in rates.items()
            if ours.startswith("chokaq")
            for other in sorted({name for name, _ in rates if not name.startswith("chokaq")})
            if rates.get((other, setup))
        }
    }


def _write(
    stage: Stage, options: argparse.Namespace, runs: dict[str, Runs], versions: dict[str, str], missing: dict[str, str]
) -> None:
    labels = {peer.name: peer.label for peer in PEERS}
    pages = [
        "# Beside other systems\n",
        (
            f"Measured on {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC by `python -m bench compare`,"
            f" {stage.repeat} interleaved run(s), medians with lowest and highest. Python {platform.python_version()},"
            f" {platform.machine()}. Everything on one host: only the ratios count.\n"
        ),
        f"{stage.noise}\n" if stage.noise.speeds else "",
    ]
    for what, found in runs.items():
        if found:
            names = [name for name in next(iter(found.values()))[0] if name != "bulk"]
            rows = [
                (
                    labels[name],
                    versions.get(name, "?"),
                    setup,
                    *(spread([run.get(n, 0.0) for run in done]) for n in names),
                )
                for (name, setup), done in found.items()
            ]
            heads = [name.replace("_", " ") + (" ms" if what == "latency" else "") for name in names]
            pages += [f"## {what.capitalize()}\n", table(("system", "version", "set-up", *heads), rows), ""]
            if what == "throughput":
                pages += ["![Completed jobs per second](compare.svg)\n"]
    if missing:
        pages += ["## Not measured\n", *(f"* {name}: {why}" for name, why in missing.items()), ""]
    options.out.mkdir(parents=True, exist_ok=True)
    text = "\n".join(pages)
    (options.out / "compare.md").write_text(text)
    found = runs.get("throughput", {})
    setups = [setup for setup in SETUPS if any(key[1] == setup for key in found)]
    groups = [
        chart.Group(
            labels[name],
            [
                spread([run["completed_per_second"] for run in found[name, setup]]) if (name, setup) in found else None
                for setup in setups
            ],
            name.startswith("chokaq"),
        )
        for name in dict.fromkeys(name for name, _ in found)
    ]
    if groups:
        words = {"1p": "1 process", "2p": "2 processes"}
        picture = chart.bars(
            "completed jobs per second", [words[setup] for setup in setups], groups, "no-op jobs, one host"
        )
        (options.out / "compare.svg").write_text(picture)
    say(text)
