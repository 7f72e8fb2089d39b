"""Everything one Deck holds."""

import asyncio
from collections.abc import Callable

from chokaq.config.load import Loaded
from chokaq.config.settings import Settings
from chokaq.deck.access import Access
from chokaq.deck.actions import Actions
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import Live
from chokaq.deck.reads import Reads
from chokaq.deck.signouts import SignOuts
from chokaq.deck.users import User
from chokaq.operations.edits import PayloadCheck
from chokaq.operations.errors import OperationError
from chokaq.store.errors import StoreError
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store

LANES = 3
"""Connections for reads and actions; one more asks what changed."""
BESIDE = "/db/"
"""Where the desks of further databases are, by name."""


class Desk:
    """What the pages are given: `pages.register(desk)` once, then every page asks it. It shows one database.

    Of several databases each has a desk; they share who may look, and every page leads to the same page of the others.
    """

    settings: Settings
    """`settings.production`: say so on every page. `settings.deck`: colours, title."""
    reads: Reads
    actions: Actions
    live: Live
    access: Access
    database: str
    """Where the jobs live, passwords hidden: for the header."""
    name: str
    """The name of that database in the configuration."""
    base: str
    """The path its pages are at, without a slash at the end: `""`, `/chokaq` or `/chokaq/db/archive`. Links are
    `f"{desk.base}/jobs"`."""
    root: str
    """The path The Deck is mounted at, likewise: where signing in and the files of the pages are."""
    desks: "list[Desk]"
    """The desks of all databases that are shown, this one among them, the first one at `root`."""

    def __init__(
        self,
        loaded: Loaded,
        store: Store,
        *,
        base: str = "",
        check: PayloadCheck | None = None,
        beside: "Desk | None" = None,
    ) -> None:
        """Opens nothing yet. `check`: what an edited payload has to pass; None: nothing is known of types.

        `beside`: the desk of another database, whose visitors are this one's; this one is then below its path, by its name.
        """
        self.settings = loaded.settings
        self.database = store.url
        self.name = self.settings.here
        self.root = base.rstrip("/") if beside is None else beside.root
        self.base = self.root if beside is None else f"{self.root}{BESIDE}{self.name}"
        self.access = Access(self.settings.deck) if beside is None else beside.access
        self.desks = [] if beside is None else beside.desks
        self.desks.append(self)
        self._lanes = Lanes(store, LANES)
        self._watch = Lanes(store, 1, "deck-watch")
        self.live = Live(self._watch, signed_out=self.access.hear if self.access.has_users else None)
        self._sign_outs = SignOuts(self._lanes, self.live)
        self.reads = Reads(
            loaded,
            self._lanes,
            self.live,
            lambda: list(reversed(self.access.refusals)),
            types_known=check is not None,
            elsewhere=self._elsewhere,
        )
        self.actions = Actions(self.settings, self._lanes, self.live, self.access, check)

    @property
    def left_out(self) -> list[str]:
        """The databases of the configuration that are not shown here at all."""
        shown = {desk.name for desk in self.desks}
        return [name for name in self.settings.named_databases if name not in shown]

    async def _elsewhere(self, job_id: str) -> str | None:
        """The other database that holds a job, as far as it is shown and answers."""
        for desk in self.desks:
            if desk is not self:
                try:
                    await desk.reads.payload(job_id)
                except (OperationError, StoreError):
                    continue
                return desk.name
        return None

    # ── signing out: of all databases shown, whichever another process of The Deck looks at ───────────────────────────
    async def sign_out(self, user: User) -> None:
        """End a session, here at once and in every other process within a second or two. Never raises."""
        self.access.sign_out(user)
        if user.session is not None and user.until is not None:
            session, until = user.session, user.until
            await asyncio.gather(*(desk._sign_outs.tell(session, until) for desk in self.desks))

    async def fresh(self) -> None:
        """Know who has signed out up to a second ago, as far as the databases answer."""
        await asyncio.gather(*(desk.live.fresh() for desk in self.desks))

    async def start(self) -> None:
        """Begin to ask what changed. In the event loop that serves."""
        self.live.start()

    async def stop(self) -> None:
        """End, and close every connection."""
        await self.live.stop()
        self._watch.close()
        self._lanes.close()


def open_desks(
    loaded: Loaded, *, base: str = "", check: PayloadCheck | None = None, store: Callable[[DatabaseSettings], Store]
) -> Desk:
    """The first desk of The Deck that a configuration means: `deck.database` alone, or every database, the default one first."""
    settings = loaded.settings
    chosen = settings.deck.database
    names = [chosen] if chosen is not None else [*settings.named_databases]
    names.sort(key=lambda name: name != settings.default_database)
    first: Desk | None = None
    for name in names:
        own = loaded._replace(settings=settings.at(name))
        desk = Desk(own, store(own.settings.database), base=base, check=check, beside=first)
        first = first or desk
    assert first is not None
    return first
