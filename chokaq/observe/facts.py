"""What the rules of health judge (chokaq.observe.health). Times are seconds."""

import msgspec


class ChildFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One place for a child of a queue."""

    name: str
    """`emails#0`."""
    here: bool = True
    """False: nobody stands there now."""
    ready: bool = False
    """It has booted, and nobody has told it to leave."""
    silent: float | None = None
    """Since its event loop last turned; None: it never has."""
    lag: float = 0.0
    """How late the loop turned the last time."""
    reaches_store: bool = True


class QueueFacts(msgspec.Struct, frozen=True):
    """A queue and its children."""

    name: str
    children: list[ChildFacts]


class LagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the database knows of a queue."""

    name: str
    held: str | None = None
    """`paused` or `inactive`: an operator wants its jobs to wait."""
    oldest_due: float | None = None
    """How long its oldest due job has waited; None: none is due."""


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the last question, and of the one under way."""

    answered: bool = False
    """The last question that ended was answered."""
    failed: bool = False
    """The last question that ended failed."""
    took: float | None = None
    """How long the last question that ended took."""
    age: float | None = None
    """Since then; None: none has ended yet."""
    waiting: float | None = None
    """Since the question under way was asked; None: none is."""


class SchemaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the database said of its schema when it was last asked."""

    known: bool = False
    """False: it has not been asked successfully yet."""
    fits: bool = True
    live: int | None = None
    needed: int | None = None
