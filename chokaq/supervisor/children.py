"""The supervisor's memory: processes that live, and posts, the places that should be filled."""

from dataclasses import dataclass, field

from chokaq.config.settings import QueueSettings, Settings
from chokaq.lifecycle.states import DeathCause
from chokaq.store.records import Held
from chokaq.supervisor.respawn import Backoff


@dataclass(slots=True, eq=False)
class Child:
    """One living process."""

    pid: int
    slot: int
    """Its slot on the board."""
    forked_at: float
    name: str
    """For the log: `emails#0`, `maintenance`."""
    ready_at: float | None = None
    drain_reason: str | None = None
    """Why it got TERM from us; None while it is wanted."""
    kill_at: float | None = None
    """When it is killed if it has not ended by then."""
    patient: bool = False
    """It got TERM without hurry: its handlers end in their own time, unless a drain with a grace follows."""
    idle_since: float | None = None
    """Since when one that leaves without hurry runs no handler."""
    killed_for: DeathCause | None = None
    """Set when we sent KILL."""
    culprits: list[Held] = field(default_factory=list)
    """Jobs past their hard deadline when we sent KILL."""


@dataclass(slots=True, eq=False)
class Assignment:
    """What a child is forked with."""

    queue: QueueSettings
    settings: Settings


@dataclass(slots=True, eq=False)
class Post:
    """A place for one child of a queue. It has at most one current child, one replacement, and some that are leaving."""

    index: int
    assignment: Assignment
    """What the current child runs with, and its successor after a crash."""
    backoff: Backoff
    added: bool = False
    """Made while running (HUP, TTIN) and never ready yet: that its child cannot boot does not stop the program."""
    current: Child | None = None
    next: Child | None = None
    """The replacement, not ready yet."""
    change: Assignment | None = None
    """What `next` runs with; becomes the assignment when it is ready."""
    replace_reason: str = ""
    leaving: list[Child] = field(default_factory=list)
    due_at: float = 0.0
    """When an empty post may be filled, in time.monotonic() seconds."""
    retry_at: float = 0.0
    """When a recycling whose replacement could not be forked, or did not boot, may be tried again."""
    been_ready: bool = False
    early_deaths: int = 0
    """Deaths in a row before ready."""
    closed: bool = False
    """No longer wanted; gone once its children have ended."""

    @property
    def queue(self) -> str:
        """Name of its queue."""
        return self.assignment.queue.name

    @property
    def name(self) -> str:
        """For the log: `emails#0`."""
        return f"{self.queue}#{self.index}"

    @property
    def grace(self) -> float:
        """Seconds that a drain with hurry has."""
        return self.assignment.settings.supervisor.shutdown_grace

    @property
    def children(self) -> list[Child]:
        """Every living process of this post."""
        return [child for child in (self.current, self.next, *self.leaving) if child is not None]

    @property
    def is_live(self) -> bool:
        """True when its child is ready and not told to leave."""
        child = self.current
        return child is not None and child.ready_at is not None and child.drain_reason is None
