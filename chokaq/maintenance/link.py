"""The maintenance process's one connection: opened when needed, registered once, opened again after it broke."""

import structlog

from chokaq.maintenance.tally import MaintenanceTally
from chokaq.observe.metrics.sink import sql
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Registration, WorkerInfo

log = structlog.get_logger("chokaq")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
"""Seconds between two tries while the store is away; doubles from the first. Short enough to resume within seconds."""


class StoreLink:
    """A session that outlives its connections."""

    def __init__(self, store: Store, worker: WorkerInfo, tally: MaintenanceTally | None = None) -> None:
        """`tally`: counts what the session does; None: nothing does."""
        self._store = store
        self._tally = tally
        self._worker = worker
        self._session: Session | None = None
        self._registration: Registration | None = None
        self._pause = 0.0
        self.breaks = 0
        """How often the connection was lost; grows only."""

    @property
    def registration(self) -> Registration | None:
        """This process's registration; None before the first success."""
        return self._registration

    @property
    def connected(self) -> bool:
        """True when the last call left the connection whole."""
        return self._session is not None

    def use(self) -> tuple[Session, Registration]:
        """The session and the registration, made now when missing. Raises StoreError."""
        if self._session is None:
            session = self._store.session()
            self._session = session if self._tally is None else self._tally.watching(session)
        if self._registration is None:
            self._registration = self._session.register_worker(self._worker)
        return self._session, self._registration

    def worked(self) -> None:
        """A call went through."""
        if self._tally is not None:
            self._tally.back()
        if self._pause:
            log.warning("store_available", store=self._store.url)
        self._pause = 0.0

    def broke(self, error: Exception) -> float:
        """A call failed for a passing reason: drop the connection; returns the seconds to wait before the next try."""
        self.breaks += 1
        sql.repeated(getattr(error, "number", ""))
        if self._tally is not None:
            self._tally.away()
        if not self._pause:
            log.warning("store_unavailable", store=self._store.url, error=str(error))
        self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self.close()
        return self._pause

    def close(self) -> None:
        """Close the connection; the registration stays."""
        if self._session is not None:
            self._session.close()
            self._session = None
