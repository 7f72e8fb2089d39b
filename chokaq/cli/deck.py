"""`chokaq deck`: the web dashboard."""

from typing import Annotated

import msgspec
import typer

from chokaq.cli.common import Common
from chokaq.cli.options import ConfigOption, DatabaseOption


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("deck")(deck)


def deck(
    ctx: typer.Context,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    host: Annotated[str | None, typer.Option(help="Listen on this address (deck.host).")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Listen on this port (deck.port); 0: a free one.")
    ] = None,
    hash_password: Annotated[
        bool, typer.Option("--hash-password", help="Ask for a password and print what goes into deck.users.")
    ] = False,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error or critical.")] = None,
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None,
) -> None:
    """Serve The Deck, the web dashboard, until SIGTERM or SIGINT. Needs chokaq's extra `deck`."""
    from chokaq.deck.program import DeckNotInstalled, require_extra, run_deck

    try:
        require_extra()
    except DeckNotInstalled as error:
        typer.echo(f"chokaq: {error}", err=True)
        raise typer.Exit(1) from None
    if hash_password:
        _hash()
        return
    from chokaq.observe.log import configure_logging

    common = Common.of(ctx, config, database)
    loaded = common.load()
    settings = loaded.settings
    chosen = {"host": host, "port": port, "database": None if common.url else common.database}
    given = {name: value for name, value in chosen.items() if value is not None}
    settings = msgspec.structs.replace(settings, deck=msgspec.structs.replace(settings.deck, **given))
    loaded.origins.update({f"deck.{name}": f"--{name}" for name in given})
    configure_logging(
        log_level or settings.log_level, log_format or settings.log_format, settings.redact, settings.log_repeats
    )
    run_deck(loaded._replace(settings=settings))


def _hash() -> None:
    from chokaq.deck.passwords import hash_password

    typer.echo(hash_password(typer.prompt("Password", hide_input=True, confirmation_prompt=True)))
