"""`chokaq check`: the configuration, the application and the database, before anything starts."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption

if TYPE_CHECKING:
    from chokaq.config import Problem, Settings
    from chokaq.operations import Databases


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("check")(check)


def check(
    ctx: typer.Context,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as problems: exit code 1.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Do not connect to the database.")] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the YAML, import the application, compare the schema, and warn about settings that contradict each other."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.config.checks import check_environment, check_settings
    from chokaq.config.load import find_file

    settings = common.settings()
    warnings = [*check_environment(os.environ), *check_settings(settings)]
    errors: list[Problem] = []
    code, queues = _application(settings, warnings, errors)
    if not offline:
        code = max(code, _database(common, warnings, errors))
    if strict and warnings:
        code = max(code, Exit.PROBLEM)
    from chokaq.cli.output import print_json

    source = find_file(common.config, common.environ)
    if common.as_json:
        print_json(
            {
                "source": source,
                "queues": queues,
                "errors": [problem._asdict() for problem in errors],
                "warnings": [problem._asdict() for problem in warnings],
            }
        )
    else:
        _print(str(source) if source else "no YAML file: defaults and the environment", queues, errors, warnings)
    if code:
        raise typer.Exit(code)


def _application(settings: "Settings", warnings: "list[Problem]", errors: "list[Problem]") -> tuple[Exit, list[str]]:
    """Import the application in a process of its own; the queues a worker would serve."""
    from chokaq.config.checks import check_application
    from chokaq.config.describe import describe_app
    from chokaq.config.errors import ConfigError, Problem

    if settings.app is None:
        warnings.append(Problem("app", "is not set: clients and commands work, `chokaq worker` will not start"))
        return Exit.OK, sorted(settings.queues)
    try:
        facts = describe_app(settings)
    except ConfigError as error:
        errors += error.problems
        return Exit.CONFIGURATION, sorted(settings.queues)
    warnings += check_application(settings, facts)
    return Exit.OK, sorted(settings.queues or facts.queues)


def _database(common: Common, warnings: "list[Problem]", errors: "list[Problem]") -> Exit:
    """Reach every database and compare its schema; the gravest of what was found."""
    settings = common.settings()
    with common.databases() as databases:
        return max(
            _one_database(databases, name, ".".join(settings.database_path(name)), common, warnings, errors)
            for name in databases.names
        )


def _one_database(
    databases: "Databases",
    name: str,
    place: str,
    common: Common,
    warnings: "list[Problem]",
    errors: "list[Problem]",
) -> Exit:
    from chokaq.cli.guard import exit_code, explain
    from chokaq.config.errors import Problem
    from chokaq.operations.schema import check_schema
    from chokaq.store.errors import StoreError

    try:
        store = databases.store(name)
        found = check_schema(store)
    except StoreError as error:
        error.database = name
        errors.append(Problem(place, explain(error, common)))
        return exit_code(error) or Exit.PROBLEM
    if found.version is None:
        if store.url.startswith("sqlite:"):
            warnings.append(Problem(place, f"{store.url} holds no schema yet: the first start installs it"))
            return Exit.OK
        errors.append(Problem(place, f"{store.url} holds no chokaq schema yet: run `chokaq schema apply`"))
        return Exit.SCHEMA
    errors += [Problem(place, difference) for difference in found.drift]
    return Exit.SCHEMA if found.drift else Exit.OK


def _print(source: str, queues: list[str], errors: "list[Problem]", warnings: "list[Problem]") -> None:
    from rich.text import Text

    from chokaq.cli.output import console

    out = console()
    out.print(Text(f"Read {source}. Queues: {', '.join(queues) or 'none named'}."))
    for word, style, problems in (("error", "red", errors), ("warning", "yellow", warnings)):
        for problem in problems:
            out.print(Text.assemble((word, style), f"  {problem}"))
    if not errors:
        out.print(Text("The configuration can be used." if warnings else "All good.", style="green"))
