"""Puts the commands together."""

from pathlib import Path
from typing import Annotated

import typer

from chokaq.cli import (
    audit,
    check,
    circuits,
    config,
    deck,
    demo,
    dlq,
    enqueue,
    health,
    jobs,
    queues,
    schema,
    status,
    worker,
    workers,
)
from chokaq.cli.common import Common
from chokaq.cli.exits import HELP
from chokaq.cli.guard import Program
from chokaq.cli.options import ConfigOption, DatabaseOption


def build() -> typer.Typer:
    """The whole command line."""
    program = typer.Typer(
        name="chokaq",
        cls=Program,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
        epilog=HELP,
    )
    program.callback()(_root)
    for module in (
        worker,
        deck,
        health,
        enqueue,
        status,
        jobs,
        dlq,
        queues,
        workers,
        circuits,
        audit,
        schema,
        check,
        config,
    ):
        module.register(program)
    program.command("demo")(demo.demo)
    return program


def _print_version(wanted: bool) -> None:
    if wanted:
        from chokaq import __version__

        typer.echo(f"chokaq {__version__}")
        raise typer.Exit


def _root(
    ctx: typer.Context,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Durable background jobs on SQL Server, or on a SQLite file."""
    ctx.obj = Common(config=Path(config) if config else None, database=database)
