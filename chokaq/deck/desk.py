"""Everything one Deck holds."""

from chokaq.config.settings import Settings
from chokaq.deck.actions import Actions
from chokaq.deck.live import Live
from chokaq.deck.reads import Reads


class Desk:
    """What the pages are given: `pages.register(desk)` once, then every page asks it."""

    settings: Settings
    """`settings.production`: say so on every page. `settings.deck`: colours, title."""
    reads: Reads
    actions: Actions
    live: Live
    database: str
    """Where the jobs live, passwords hidden: for the header."""
    base: str
    """The path The Deck is mounted at, without a slash at the end: `""` or `/chokaq`. Links are `f"{desk.base}/jobs"`."""
