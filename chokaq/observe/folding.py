"""Repeats of an event become one line with a count, so that an outage or a broken type does not bury everything else."""

import os
import threading
import time
import weakref
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn

import structlog

from chokaq.observe.events import EVENTS

WINDOW = 60.0
"""Seconds in which repeats are counted together, from the first of them on."""
KEYS = (
    "queue", "type", "child", "lane", "call", "operation", "reason", "cause", "command", "what", "address", "topic", "store",
)  # fmt: skip
"""Lines of one event that agree in these fields are repeats; job ids, figures and texts do not tell them apart."""
MOST_KEYS = 2_000
"""Beyond so many different ones in a window an event is counted by its name alone."""

Key = tuple[object, ...]


class _Seen:
    __slots__ = ("count", "level", "over_at")

    def __init__(self, level: str, over_at: float) -> None:
        self.level = level
        self.over_at = over_at
        self.count = 0


class Folding:
    """structlog processor: lets `limit` repeats per window pass and counts the others; when it is over, one line tells of them.

    Only chokaq's own events above debug are counted. Safe from any thread.
    """

    def __init__(self, limit: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        """`limit`: None counts nothing; `clock`: seconds."""
        self.limit = limit
        self._clock = clock
        self._lock = threading.RLock()
        self._seen: dict[Key, _Seen] = {}
        self._due = float("inf")
        """When the first window is over."""
        _foldings.add(self)

    def __call__(self, logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Called by structlog. Raises DropEvent for a line that is folded."""
        if self.limit is None or "folded" in event or not is_ours(logger) or event["event"] not in EVENTS:
            return event
        self.tick()
        if method != "debug" and self._is_one_too_many(method, event):
            _drop()
        return event

    def tick(self) -> None:
        """Tell of what was folded in windows that are over; called several times a minute by every process."""
        if self._clock() >= self._due:
            self._tell(self._clock())

    def flush(self) -> None:
        """Tell of everything that was folded so far: the process ends."""
        self._tell(float("inf"))

    def forget(self) -> None:
        """In a fresh child: what the parent counted is the parent's."""
        self._lock = threading.RLock()
        self._seen = {}
        self._due = float("inf")

    def _is_one_too_many(self, method: str, event: MutableMapping[str, Any]) -> bool:
        assert self.limit is not None
        key: Key = (event["event"], *(_plain(event.get(name)) for name in KEYS))
        with self._lock:
            seen = self._seen.get(key)
            if seen is None and len(self._seen) >= MOST_KEYS:
                key = (event["event"],)
                seen = self._seen.get(key)
            if seen is None:
                over_at = self._clock() + WINDOW
                seen = self._seen[key] = _Seen(method, over_at)
                self._due = min(self._due, over_at)
            seen.count += 1
            return seen.count > self.limit

    def _tell(self, now: float) -> None:
        with self._lock:
            over = [(key, seen) for key, seen in self._seen.items() if seen.over_at <= now]
            for key, _ in over:
                del self._seen[key]
            self._due = min((seen.over_at for seen in self._seen.values()), default=float("inf"))
        for key, seen in over:
            if self.limit is not None and seen.count > self.limit:
                fields = {name: value for name, value in zip(KEYS, key[1:], strict=False) if value is not None}
                log = getattr(structlog.get_logger("chokaq"), seen.level)
                log(key[0], **fields, folded=seen.count - self.limit, seconds=round(WINDOW))


def is_ours(logger: object) -> bool:
    """True for the logger of the package itself: an application's event may have the same name.

    Where the loggers that structlog was told to use have no names, the event's name alone has to do.
    """
    return getattr(logger, "name", "chokaq") == "chokaq"


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int) else str(value)


def _drop() -> NoReturn:
    raise structlog.DropEvent


_foldings: weakref.WeakSet[Folding] = weakref.WeakSet()


def _forget_all() -> None:
    for folding in list(_foldings):
        folding.forget()


os.register_at_fork(after_in_child=_forget_all)
