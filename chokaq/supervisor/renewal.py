"""What HUP and USR2 ask for: the file and the application as they are now, found out while the supervisor goes on.

The file is read at once. The application is described by a process of its own, which is reaped like any child; when it has
ended, what was asked for is carried out, or refused with the reason, and then everything stays as it was.

Another database is refused, for all queues or for one: the children of the old one are still at work, and what they leave behind
has to be released there. Another login, password or driver option for the same database is not, nor is a new queue, wherever it
lives.
"""

from collections.abc import Callable
from enum import StrEnum

import structlog

from chokaq.config.complete import complete, read_worker_settings, with_policies
from chokaq.config.describe import IMPORT_SECONDS, Description
from chokaq.config.document import path_text
from chokaq.config.errors import ConfigError, Problem
from chokaq.config.settings import Settings
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.supervisor.reaper import Exit

log = structlog.get_logger("chokaq")


class Wish(StrEnum):
    """What a signal asks for."""

    RELOAD = "reload"
    """HUP: the settings of now; children whose settings have changed are replaced."""
    RESTART = "restart"
    """USR2: every child anew, with the code of now."""


class Renewal:
    """At most one description is under way; it serves everything asked for until it ends."""

    def __init__(self, carry_out: Callable[[Settings, frozenset[Wish]], None]) -> None:
        """`carry_out` gets the new settings (for a restart alone: the present ones, with the policies of the code of now)."""
        self._carry_out = carry_out
        self._wishes: set[Wish] = set()
        self._present = Settings()
        self._reread: Settings | None = None
        self._description: Description | None = None
        self._given_up_at = 0.0

    @property
    def busy(self) -> bool:
        """True while something asked for is neither carried out nor refused."""
        return self._description is not None

    def ask(self, wish: Wish, present: Settings, now: float) -> None:
        """Begin; what is under way for an earlier signal begins again, since the application may have changed since."""
        self._present = present
        self._wishes.add(wish)
        if wish is Wish.RELOAD:
            try:
                self._reread = _same_databases(read_worker_settings(present.source), present)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the old settings go on
                self._refuse({Wish.RELOAD}, str(error))
        if self._wishes:
            self._describe(now)

    def took(self, end: Exit) -> bool:
        """True when it was our process that ended, and what follows from that is done."""
        description = self._description
        if description is None or description.pid != end.pid:
            return False
        self._description = None
        try:
            facts = description.ended(-(end.signal or 0) if end.code is None else end.code)
            reread = self._reread
            settings = with_policies(self._present, facts) if reread is None else complete(reread, facts)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the application, the old code goes on
            self._refuse(self._wishes, str(error))
            return True
        wishes = frozenset(self._wishes)
        self._forget(self._wishes)
        self._carry_out(settings, wishes)
        return True

    def step(self, now: float) -> None:
        """Give up an application that takes too long."""
        description = self._description
        if description is not None and now >= self._given_up_at:
            self.cancel()
            self._refuse(self._wishes, str(description.too_slow(IMPORT_SECONDS)))

    def cancel(self) -> None:
        """End the process under way; what was asked for is neither carried out nor refused."""
        if self._description is not None:
            self._description.abandon()
            self._description = None

    def _describe(self, now: float) -> None:
        self.cancel()
        self._given_up_at = now + IMPORT_SECONDS
        try:
            self._description = Description(self._reread or self._present)
        except Exception as error:  # noqa: BLE001 - the host gives no process: the next signal may find one
            self._refuse(self._wishes, str(error))

    def _refuse(self, wishes: set[Wish], problem: str) -> None:
        source = str(self._present.source)
        if Wish.RELOAD in wishes:
            log.warning("reload_refused", problem=problem, source=source)
        if Wish.RESTART in wishes:
            log.warning("restart_refused", problem=problem, source=source)
        self._forget(wishes)

    def _forget(self, wishes: set[Wish]) -> None:
        self._wishes -= set(wishes)
        if Wish.RELOAD not in self._wishes:
            self._reread = None


def _same_databases(new: Settings, present: Settings) -> Settings:
    """`new`, when every database is where it was, and every queue in the one it was in. Raises ConfigError."""
    problems = []
    for name, database in present.named_databases.items():
        changed = new.named_databases.get(name)
        if changed is not None and _place(changed) != _place(database):
            problem = "another database needs a restart of `chokaq worker`: its children still work on the present one"
            problems.append(Problem(path_text((*new.database_path(name), "url")), problem))
    for queue in {**present.places, **present.queues}:
        before, after = present.database_name(queue), new.database_name(queue)
        if before != after:
            problem = (
                f"a queue that moves (from the database {before} to {after}) needs a restart of `chokaq worker`: its children "
                "still work on the present one"
            )
            problems.append(Problem(path_text(("queues", queue, "database")), problem))
    if problems:
        raise ConfigError(problems, None if new.source is None else str(new.source))
    return new


def _place(database: DatabaseSettings) -> str:
    """Which database it is; whoever logs in, and however. Raises StoreMisconfigured."""
    return open_store(database).identity
