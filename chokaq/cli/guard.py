"""Turns every error a person can mend into one clear message and an exit code: no traceback, no password."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit


class Program(TyperGroup):
    """The root command: runs a subcommand and reports what it raises."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command line. Known errors end the program with their exit code."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            report(error, code, ctx.obj if isinstance(ctx.obj, Common) else Common())
            raise typer.Exit(code) from None


def exit_code(error: Exception) -> Exit | None:
    """The exit code that stands for an error; None for one that is a defect of the program."""
    from chokaq.config.errors import ConfigError
    from chokaq.operations.errors import OperationError
    from chokaq.store.errors import SchemaMismatch, StoreError, StoreMisconfigured, StoreUnavailable

    match error:
        case ConfigError() | StoreMisconfigured():
            return Exit.CONFIGURATION
        case StoreUnavailable():
            return Exit.UNREACHABLE
        case SchemaMismatch():
            return Exit.SCHEMA
        case OperationError() | StoreError():
            return Exit.PROBLEM
        case _:
            return None


def report(error: Exception, code: Exit, common: Common) -> None:
    """Say what is wrong: on stderr, and with `--json` as an object on stdout too."""
    message = explain(error, common)
    if common.as_json:
        from chokaq.cli.output import print_json

        print_json({"error": {"kind": code.name.lower(), "message": message}})
    sys.stderr.write(f"chokaq: {message}\n")


def explain(error: Exception, common: Common) -> str:
    """The message of an error, with the setting to look at when the store is to blame."""
    from chokaq.observe.redact import redact_text
    from chokaq.store.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable

    message = redact_text(str(error))
    if isinstance(error, StoreMisconfigured | StoreUnavailable) and common.loaded is not None:
        from chokaq.store.url import redact

        settings = common.loaded.settings
        name = error.database or (None if common.url else common.database) or settings.default_database
        if name in settings.named_databases:
            path = ".".join((*settings.database_path(name), "url"))
            origin = common.loaded.origins.get(path, "default")
            message += f"\n  {path} is {redact(settings.named_databases[name].url)} (from {origin})"
    elif isinstance(error, SchemaMismatch) and "schema apply" not in message:
        message += (
            "\n  `chokaq schema check` names the differences; `chokaq schema apply` brings an older schema up to date"
        )
    return message
