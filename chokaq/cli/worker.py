"""`chokaq worker`: the supervisor and its children."""

import atexit
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, NoReturn

import typer

from chokaq.cli.common import Common
from chokaq.cli.options import ConfigOption, DatabaseOption

LAST_MOMENT = 1.0
"""Seconds after a signal before the start at which the process ends, whatever it is doing."""


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("worker")(worker)


def worker(
    ctx: typer.Context,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    app: Annotated[
        str | None, typer.Option("--app", metavar="MODULE:ATTRIBUTE", help="The application object.")
    ] = None,
    queue: Annotated[list[str] | None, typer.Option("--queue", "-q", help="Serve only this queue; repeatable.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error or critical.")] = None,
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None,
) -> None:
    """Run jobs: fork the children of every queue and look after them until SIGTERM or SIGINT.

    SIGHUP reads the YAML again (but keeps the database), SIGUSR2 restarts the children one by one, SIGTTIN and SIGTTOU add
    and take away a process, SIGRTMIN+22 logs at debug and SIGRTMIN+23 as configured again. Options and a configuration file given
    here hold after a SIGHUP, too.
    """
    with leaving_when_told():
        common = Common.of(ctx, config, database)
        given = {
            "CHOKAQ_APP": app,
            "CHOKAQ_QUEUES": ",".join(queue) if queue else None,
            "CHOKAQ_LOG_LEVEL": log_level,
            "CHOKAQ_LOG_FORMAT": log_format,
        }
        os.environ.update({name: value for name, value in given.items() if value})
        from chokaq.config.complete import load_worker_settings
        from chokaq.config.describe import ApplicationError
        from chokaq.observe.log import configure_logging

        loaded = common.load()
        if common.database and any(path.startswith("databases.") for path in loaded.origins):
            raise typer.BadParameter(
                "the configuration names several databases, and a worker serves its queues where they live: leave this out "
                "(--queue serves a part of the queues)",
                param_hint="--database",
            )
        try:
            settings = load_worker_settings(common.config, common.environ)
        except ApplicationError as error:
            _refuse(error)
        # Children, and a reload, read the environment again: what was chosen here has to hold there.
        if settings.source is not None:
            os.environ["CHOKAQ_CONFIG"] = str(settings.source)
        if database or common.database:
            os.environ["CHOKAQ_DATABASE_URL"] = settings.database.url
        configure_logging(settings.log_level, settings.log_format, settings.redact, settings.log_repeats)
        from chokaq.supervisor import run

        raise typer.Exit(run(settings))


@contextmanager
def leaving_when_told() -> Iterator[None]:
    """Inside, TERM and INT end the program with exit code 0, until the supervisor's own handlers replace these.

    There is nothing to drain yet. As PID 1 of a container a signal without a handler is dropped, and the program would start.
    """
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    # What is imported at this moment may swallow the exception; the application being described is ended by it, though.
    signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, LAST_MOMENT)
    # Past its exit handlers the interpreter drops ours: the alarm would then kill, and the exit code would not be 0.
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0.0)
    raise SystemExit(0)


def _refuse(error: Exception) -> NoReturn:
    """End as a supervisor does whose children cannot boot: starting again will not help."""
    from chokaq.observe.redact import redact_text
    from chokaq.supervisor.exits import ProgramExit

    sys.stderr.write(f"chokaq: {redact_text(str(error))}\n")
    raise typer.Exit(ProgramExit.BOOT_FAILED) from None
