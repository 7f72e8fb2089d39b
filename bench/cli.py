"""The commands: `python -m bench throughput --store sqlite --json`."""

import argparse
import importlib
import os
from collections.abc import Sequence

from bench.output import answer, note
from bench.stage import staged
from bench.target import URL_VARIABLE, BenchError

COMMANDS = {
    "throughput": "completed jobs per second, round trips and CPU per job, share of the bare ceiling",
    "latency": "from the enqueue call to the handler, jobs one at a time, the worker idle",
    "flat": "cost of fetch and settle at 10,000 and at 1,000,000 rows",
    "idle": "CPU, store calls and memory of a child without jobs",
    "enqueue": "one job and a thousand jobs a call, against the store's bare insert",
    "claimers": "completed jobs per second with 1 to 64 claimers",
    "crash": "SIGKILL to a child halfway: lost, repeated, dead-lettered, seconds until all is done",
    "soak": "minutes at a steady rate: memory, latency, errors",
    "compare": "beside pgqueuer, dramatiq, huey, taskiq, oban, celery and procrastinate, by one method, in one run",
}


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--store", choices=["sqlite", "sqlserver"], default="sqlite")
        command.add_argument(
            "--database",
            default=os.environ.get(URL_VARIABLE),
            help=f"mssql://user:password@host/database; default: ${URL_VARIABLE}. A schema of the bench's own is used there",
        )
        command.add_argument("--json", action="store_true", help="the result as one JSON object on the last line")
        command.add_argument("--repeat", type=int, default=3, help="runs of each variant, interleaved")
        command.add_argument("--keep", action="store_true", help="leave database and logs where they are")
        importlib.import_module(f"bench.{name}").configure(command)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    options = parser().parse_args(arguments)
    try:
        with staged(options.store, options.database, repeat=options.repeat, keep=options.keep) as stage:
            result = importlib.import_module(f"bench.{options.command}").run(stage, options)
    except BenchError as error:
        note(f"bench: {error}")
        return 1
    if options.json:
        answer({"bench": options.command, **result})
    return 0
