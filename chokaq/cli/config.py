"""`chokaq config`: the settings in force, or an example file."""

import sys
from typing import Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.options import ConfigOption, DatabaseOption, JsonOption


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("config")(config_)


def config_(
    ctx: typer.Context,
    example: Annotated[bool, typer.Option("--example", help="Print a commented file with every option.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the settings in force and where each one comes from (default).")
    ] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the settings in force, without secrets, or an example file."""
    if example and show:
        raise typer.BadParameter("give either --example or --show", param_hint="--example")
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json, safe, table

    if example:
        from chokaq.config.example import example as example_file

        text = example_file()
        if common.as_json:
            print_json({"example": text})
        else:
            sys.stdout.write(text)
        return
    from chokaq.config.show import DEFAULT, redacted, shown_settings

    loaded = common.load()
    rows = shown_settings(loaded)
    if common.as_json:
        print_json({"settings": redacted(loaded.settings), "origins": loaded.origins})
        return
    out = console()
    listed = []
    for row in rows:
        is_default = row.origin == DEFAULT
        value, origin = safe(row.value), safe(row.origin)
        listed.append(
            (
                safe(row.path),
                value if is_default else f"[bold]{value}[/]",
                f"[dim]{origin}[/]" if is_default else origin,
            )
        )
    out.print(table(("~option", "~value", "origin"), listed))
