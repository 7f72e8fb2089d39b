"""`chokaq schema apply | check | script | version`."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from chokaq.cli.common import Common
from chokaq.cli.exits import Exit
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption

if TYPE_CHECKING:
    from chokaq.store.protocol import Store


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Install and compare the database's tables and procedures.")
    for command in (apply, check, script, version):
        group.command(command.__name__)(command)
    program.add_typer(group, name="schema")


def apply(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Bring the database to this program's version. Safe from many processes at once, and again and again.

    With several databases: each of them, or the one that --database names.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.schema import apply_schema, schema_version

    def one(store: "Store") -> tuple[dict[str, object], list[str], bool]:
        applied = apply_schema(store)
        version = schema_version(store)
        lines = [f"applied {name}" for name in applied]
        lines.append(f"{store.url} is at version {version}{'' if applied else '; nothing to do'}")
        return {"applied": applied, "version": version, "database": store.url}, lines, True

    _each(common, one)


def check(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Name every difference between the database (or each of them) and this program. Exit code 1 when there is one."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import plain
    from chokaq.operations.schema import check_schema

    def one(store: "Store") -> tuple[dict[str, object], list[str], bool]:
        found = check_schema(store)
        fits = [f"{store.url} is at version {found.version}, which serves this program"]
        return plain(found), found.drift or fits, not found.drift

    _each(common, one)


def script(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Print what `apply` would run, for a DBA (sqlcmd, or sqlite3). Opens no connection. Of several databases: name one."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import print_json
    from chokaq.operations.schema import schema_script

    with common.databases() as databases:
        if databases.several:
            raise typer.BadParameter(
                f"a script is for one database: name it, one of {', '.join(databases.names)}", param_hint="--database"
            )
        text = schema_script(databases.store(databases.names[0]))
    if common.as_json:
        print_json({"script": text})
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def version(
    ctx: typer.Context, config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False
) -> None:
    """Print the version of the schema of the database, or of each. Exit code 1 when nothing is installed."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.schema import schema_version

    def one(store: "Store") -> tuple[dict[str, object], list[str], bool]:
        found = schema_version(store)
        text = "nothing is installed" if found is None else str(found)
        return {"version": found, "database": store.url}, [text], found is not None

    _each(common, one)


def _each(common: Common, one: "Callable[[Store], tuple[dict[str, object], list[str], bool]]") -> None:
    """Do `one` to every database: what to print (as JSON, and in lines), and whether it is as it should be.

    One that fails does not keep the others from their turn. Exit code 1 when one is not as it should be.
    """
    from chokaq.cli.guard import exit_code, explain
    from chokaq.cli.output import print_json
    from chokaq.store.errors import StoreError

    told: dict[str, object] = {}
    code = 0
    with common.databases() as databases:
        for name in databases.names:
            try:
                answer, lines, good = one(databases.store(name))
            except StoreError as error:
                if not databases.several:
                    raise
                error.database = name
                message = explain(error, common)
                told[name] = {"error": message}
                code = max(code, exit_code(error) or Exit.PROBLEM)
                sys.stderr.write(f"chokaq: {name}: {message}\n")
                continue
            told[name] = answer
            code = max(code, Exit.OK if good else Exit.PROBLEM)
            if not common.as_json:
                for line in lines:
                    typer.echo(f"{name}: {line}" if databases.several else line)
        if common.as_json:
            print_json({"databases": told} if databases.several else told[databases.names[0]])
    if code:
        raise typer.Exit(code)
