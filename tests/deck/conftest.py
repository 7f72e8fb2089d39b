"""A Deck over the store under test, without a server and without pages unless a test asks for them.

The stories in `browser/` need Debian's Chromium (package chromium, or a path in CHOKAQ_TEST_CHROMIUM).
"""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import msgspec
import pytest
from argon2 import PasswordHasher

from chokaq.config.load import Loaded
from chokaq.config.settings import DeckSettings, DeckUser, Settings
from chokaq.deck.desk import Desk
from chokaq.deck.site import build_site
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store

TOKEN = "token-of-32-characters-or-longer-0"
PASSWORD = "correct horse battery staple"
_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
"""Cheap: tests sign in often."""
USERS = {"anna": DeckUser(password_hash=_HASH, role="operator"), "vera": DeckUser(password_hash=_HASH)}
HOST = "http://127.0.0.1:8420"

OpenDesk = Callable[..., Desk]
CHROMIUM = os.environ.get("CHOKAQ_TEST_CHROMIUM", "/usr/bin/chromium")
collect_ignore = [] if Path(CHROMIUM).exists() else ["browser"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what this machine could not run."""
    if collect_ignore:
        terminalreporter.section("NO BROWSER", sep="!")
        terminalreporter.line(f"The Deck's stories were not run: there is no {CHROMIUM} (Debian package chromium).")


@pytest.fixture
async def desks(store: Store, store_options: DatabaseSettings) -> AsyncIterator[OpenDesk]:
    """Makes a desk out of the options of `deck:`; ended at the end."""
    made: list[Desk] = []

    def make(*, production: bool = False, base: str = "", **deck: object) -> Desk:
        settings = Settings(database=store_options, production=production, deck=DeckSettings(**deck))  # type: ignore[arg-type]
        made.append(Desk(Loaded(settings, {}), store, base=base))
        return made[-1]

    yield make
    for desk in made:
        await desk.stop()


@pytest.fixture
def desk(desks: OpenDesk) -> Desk:
    """A desk on loopback, where nobody has to sign in."""
    return desks()


def client(desk: Desk, *, address: str = "127.0.0.1", host: str = HOST, **options: object) -> httpx.AsyncClient:
    """A browser's or a program's side of a desk's site."""
    transport = httpx.ASGITransport(build_site(desk, pages=False), client=(address, 40_000), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=host + desk.base, **options)  # type: ignore[arg-type]


def replaced(settings: DeckSettings, **fields: object) -> DeckSettings:
    """Other settings."""
    return msgspec.structs.replace(settings, **fields)
