"""The database as probes see it: asked by one thread, at most once a second and only when somebody wants to know.

Whoever asks waits no longer than it says, and gets what is known by then: probes answer while the database hangs.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import structlog

from chokaq.observe.facts import DatabaseFacts, LagFacts, SchemaFacts
from chokaq.observe.redact import redact_text
from chokaq.store.errors import SchemaMismatch
from chokaq.store.probing import StoreHealth
from chokaq.store.protocol import Session

log = structlog.get_logger("chokaq")

EVERY = 1.0
"""Seconds between the beginnings of two questions, at least; an answer serves for so long."""
LONGEST_PAUSE = 5.0
"""The same while the database fails: doubled with every failure, up to this."""


class Known(NamedTuple):
    """What is known of the database at one instant."""

    database: DatabaseFacts
    schema: SchemaFacts
    lag: list[LagFacts] | None
    """None: not known."""


class _Ended(NamedTuple):
    """A question that has ended."""

    began: float
    took: float
    health: StoreHealth | None
    """None: it failed, or the schema does not fit."""
    mismatch: bool = False


class Watcher:
    """Asks over a session of its own. Starts no thread, and opens nothing, before it is first wanted."""

    def __init__(
        self,
        open_session: Callable[[], Session],
        queues: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
        *,
        database: str | None = None,
    ) -> None:
        """`queues`: names of those to ask about, at that moment. `database`: its name, for the log, where there are several."""
        self._open = open_session
        self._queues = queues
        self._clock = clock
        self._named = {} if database is None else {"database": database}
        self._session: Session | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wanted = False
        self._asked_at: float | None = None
        self._ended: _Ended | None = None
        self._questions = 0
        self._failures = 0
        self._fresh_until = 0.0
        self._schema = SchemaFacts()

    def look(self, patience: float) -> Known:
        """What is known, after a question if the last one is not fresh any more; waits `patience` seconds for it at most."""
        with self._changed:
            if self._ended is None or self._clock() >= self._fresh_until:
                if self._asked_at is None:
                    self._want()
                before = self._questions
                if patience > 0:
                    self._changed.wait_for(lambda: self._questions > before, patience)
            return self._known(self._clock())

    def close(self) -> None:
        """Ask no more; a question under way is left to its end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _want(self) -> None:
        self._wanted = True
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._work, name="chokaq-probe-database", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _known(self, now: float) -> Known:
        ended = self._ended
        database = DatabaseFacts(waiting=None if self._asked_at is None else now - self._asked_at)
        lag = None
        if ended is not None:
            database = DatabaseFacts(
                answered=ended.health is not None or ended.mismatch,
                failed=ended.health is None and not ended.mismatch,
                took=ended.took,
                age=now - ended.began - ended.took,
                waiting=database.waiting,
            )
            if ended.health is not None:
                lag = [
                    LagFacts(
                        name=queue.name,
                        held="inactive" if not queue.active else "paused" if queue.paused else None,
                        oldest_due=None if queue.oldest_due_ms is None else queue.oldest_due_ms / 1000,
                    )
                    for queue in ended.health.queues
                ]
        return Known(database, self._schema, lag)

    # ── the thread ────────────────────────────────────────────────────────────────────────────────────────────────────
    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._wanted)
                if self._closed:
                    break
                self._wanted = False
                began = self._asked_at = self._clock()
            ended, error = self._ask(began)
            with self._changed:
                self._take(ended, error)
                self._changed.notify_all()
        self._disconnect()

    def _ask(self, began: float) -> tuple[_Ended, Exception | None]:
        try:
            if self._session is None:
                self._session = self._open()
            health = self._session.read_health(self._queues())
        except Exception as error:  # noqa: BLE001 - whatever it is, the next question may go better
            self._disconnect()
            return _Ended(began, self._clock() - began, None, isinstance(error, SchemaMismatch)), error
        return _Ended(began, self._clock() - began, health), None

    def _take(self, ended: _Ended, error: Exception | None) -> None:
        self._asked_at, self._ended = None, ended
        self._questions += 1
        if ended.health is not None:
            health = ended.health
            self._schema = SchemaFacts(known=True, fits=health.fits, live=health.version, needed=health.needed)
        elif ended.mismatch:
            self._schema = SchemaFacts(known=True, fits=False)
        if error is None:
            if self._failures:
                log.info("probe_database_answers", failures=self._failures, **self._named)
            self._failures, pause = 0, EVERY
        else:
            if not self._failures:
                problem = redact_text(f"{type(error).__name__}: {error}")
                log.warning("probe_database_failed", error=problem, **self._named)
            pause = min(LONGEST_PAUSE, EVERY * 2.0 ** min(self._failures, 10))
            self._failures += 1
        self._fresh_until = ended.began + pause

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()
