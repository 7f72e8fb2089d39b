"""`chokaq schema apply | check | script | version`."""

import sys

import typer

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Install and compare the database's tables and procedures.")
    for command in (apply, check, script, version):
        group.command(command.__name__)(command)
    program.add_typer(group, name="schema")


def apply(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Bring the database to this program's version. Safe from many processes at once, and again and again."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import print_json
    from chokaq.operations.schema import apply_schema, schema_version

    store = common.store()
    applied = apply_schema(store)
    if common.as_json:
        print_json({"applied": applied, "version": schema_version(store), "database": store.url})
        return
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo(f"{store.url} is at version {schema_version(store)}{'' if applied else '; nothing to do'}")


def check(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Name every difference between the database and this program. Exit code 1 when there is one."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import print_json
    from chokaq.operations.schema import check_schema

    store = common.store()
    found = check_schema(store)
    if common.as_json:
        print_json(found)
    elif found.drift:
        for difference in found.drift:
            typer.echo(difference)
    else:
        typer.echo(f"{store.url} is at version {found.version}, as this program wants it")
    if found.drift:
        raise typer.Exit(Exit.PROBLEM)


def script(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Print what `apply` would run, for a DBA (sqlcmd, or sqlite3). Opens no connection."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import print_json
    from chokaq.operations.schema import schema_script

    text = schema_script(common.store())
    if common.as_json:
        print_json({"script": text})
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def version(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Print the version of the database's schema. Exit code 1 when nothing is installed."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import print_json
    from chokaq.operations.schema import schema_version

    store = common.store()
    found = schema_version(store)
    if common.as_json:
        print_json({"version": found, "database": store.url})
    else:
        typer.echo("nothing is installed" if found is None else str(found))
    if found is None:
        raise typer.Exit(Exit.PROBLEM)
