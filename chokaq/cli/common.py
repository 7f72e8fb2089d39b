"""What every command shares: which configuration, which database, how to answer."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from chokaq.config import Loaded, Settings
    from chokaq.operations import By
    from chokaq.store.protocol import Session, Store


@dataclass
class Common:
    """The options that stand before or after any command."""

    config: Path | None = None
    database: str | None = None
    as_json: bool = False
    loaded: "Loaded | None" = None
    """The settings, once a command has read them."""

    @classmethod
    def of(cls, ctx: typer.Context, config: Path | None, database: str | None, as_json: bool = False) -> "Common":
        """The root's options with the command's own over them; known to the error report from here on."""
        root = ctx.find_root()
        common: Common = root.obj if isinstance(root.obj, Common) else cls()
        root.obj = ctx.obj = common
        common.config = config or common.config
        common.database = database or common.database
        common.as_json = as_json or common.as_json
        return common

    @property
    def environ(self) -> dict[str, str]:
        """The process's environment, with `--database` in it."""
        return os.environ | ({"CHOKAQ_DATABASE_URL": self.database} if self.database else {})

    def load(self) -> "Loaded":
        """Read and check the configuration. Raises ConfigError."""
        from chokaq.config.load import load

        if self.loaded is None:
            self.loaded = load(self.config, self.environ)
            if self.database:
                self.loaded.origins["database.url"] = "--database"
        return self.loaded

    def settings(self) -> "Settings":
        """The settings. Raises ConfigError."""
        return self.load().settings

    @contextmanager
    def connected(self) -> "Iterator[tuple[Store, Session]]":
        """The store and an open session. Raises ConfigError or a StoreError."""
        from chokaq.operations.connect import connected

        with connected(self.settings().database) as pair:
            yield pair

    def store(self) -> "Store":
        """The store, without a session. Raises ConfigError or StoreMisconfigured."""
        from chokaq.operations.connect import find_store

        return find_store(self.settings().database)


def who(actor: str | None, reason: str | None) -> "By":
    """The operator of a command: `--actor`, else the operating system's user on this host."""
    from chokaq.operations.actor import by, default_actor

    return by(actor or default_actor(), reason)
