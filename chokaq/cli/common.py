"""What every command shares: which configuration, which database, how to answer."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from chokaq.config import Loaded, Settings
    from chokaq.operations import By, Databases


@dataclass
class Common:
    """The options that stand before or after any command."""

    config: Path | None = None
    database: str | None = None
    """What `--database` says: a URL, or the name of one of several."""
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
    def url(self) -> str | None:
        """The URL that `--database` gives; None: it gives a name, or nothing."""
        return self.database if self.database and "://" in self.database else None

    @property
    def environ(self) -> dict[str, str]:
        """The process's environment, with the URL of `--database` in it."""
        return os.environ | ({"CHOKAQ_DATABASE_URL": self.url} if self.url else {})

    def load(self) -> "Loaded":
        """Read and check the configuration. Raises ConfigError; OperationError when no database is called as was said."""
        from chokaq.config.load import load

        if self.loaded is None:
            self.loaded = load(self.config, os.environ, database=self.url)
            if self.url:
                self.loaded.origins["database.url"] = "--database"
            elif self.database:
                self._check_name(self.loaded.settings)
        return self.loaded

    def _check_name(self, settings: "Settings") -> None:
        from chokaq.operations.errors import OperationError

        if self.database not in settings.databases:
            known = (
                f"those of the configuration are {', '.join(settings.databases)}"
                if settings.databases
                else ("the configuration has one, without a name (`databases:` would name several)")
            )
            raise OperationError(
                f"--database: {self.database!r} is neither a URL (sqlite:///path, mssql://…) nor the name of a database; {known}"
            )

    def settings(self) -> "Settings":
        """The settings. Raises ConfigError."""
        return self.load().settings

    def databases(self) -> "Databases":
        """All databases of the configuration, or the one that `--database` names; use it in a `with`. Raises ConfigError."""
        from chokaq.operations.databases import Databases

        return Databases(self.settings(), None if self.url else self.database)


def who(actor: str | None, reason: str | None) -> "By":
    """The operator of a command: `--actor`, else the operating system's user on this host."""
    from chokaq.operations.actor import by, default_actor

    return by(actor or default_actor(), reason)
