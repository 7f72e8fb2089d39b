"""Everything one Deck holds."""

from chokaq.config.load import Loaded
from chokaq.config.settings import Settings
from chokaq.deck.access import Access
from chokaq.deck.actions import Actions
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import Live
from chokaq.deck.reads import Reads
from chokaq.operations.edits import PayloadCheck
from chokaq.store.protocol import Store

LANES = 3
"""Connections for reads and actions; one more asks what changed."""


class Desk:
    """What the pages are given: `pages.register(desk)` once, then every page asks it."""

    settings: Settings
    """`settings.production`: say so on every page. `settings.deck`: colours, title."""
    reads: Reads
    actions: Actions
    live: Live
    access: Access
    database: str
    """Where the jobs live, passwords hidden: for the header."""
    base: str
    """The path The Deck is mounted at, without a slash at the end: `""` or `/chokaq`. Links are `f"{desk.base}/jobs"`."""

    def __init__(self, loaded: Loaded, store: Store, *, base: str = "", check: PayloadCheck | None = None) -> None:
        """Opens nothing yet. `check`: what an edited payload has to pass; None: nothing is known of types."""
        self.settings = loaded.settings
        self.database = store.url
        self.base = base.rstrip("/")
        self.access = Access(self.settings.deck)
        self._lanes = Lanes(store, LANES)
        self._watch = Lanes(store, 1, "deck-watch")
        self.live = Live(self._watch)
        self.reads = Reads(
            loaded,
            self._lanes,
            self.live,
            lambda: list(reversed(self.access.refusals)),
            types_known=check is not None,
        )
        self.actions = Actions(self.settings, self._lanes, self.live, self.access, check)

    async def start(self) -> None:
        """Begin to ask what changed. In the event loop that serves."""
        self.live.start()

    async def stop(self) -> None:
        """End, and close every connection."""
        await self.live.stop()
        self._watch.close()
        self._lanes.close()
