"""Threads with a session each: the event loop never waits for the database."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from chokaq.store.errors import StoreError, StoreRefused
from chokaq.store.protocol import Session, Store

Answer = TypeVar("Answer")


class Lanes:
    """A few threads. Each opens its session when it first needs one, and a new one after an error of the store."""

    def __init__(self, store: Store, count: int, name: str = "deck") -> None:
        self._store = store
        self._own = threading.local()
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=f"chokaq-{name}")
        self._closed = False

    @property
    def store(self) -> Store:
        """Where the sessions lead."""
        return self._store

    async def run(self, ask: Callable[[Session], Answer]) -> Answer:
        """Run `ask` in a thread, with a session that no one else uses meanwhile. Raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask, ask)

    def close(self) -> None:
        """Wait for what is under way and close every session."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        for session in self._sessions:
            session.close()
        self._sessions.clear()

    def _ask(self, ask: Callable[[Session], Answer]) -> Answer:
        try:
            return ask(self._session())
        except StoreRefused:
            raise
        except StoreError:
            self._give_up()
            raise

    def _session(self) -> Session:
        session: Session | None = getattr(self._own, "session", None)
        if session is None:
            session = self._own.session = self._store.session()
            with self._lock:
                self._sessions.add(session)
        return session

    def _give_up(self) -> None:
        session: Session | None = getattr(self._own, "session", None)
        self._own.session = None
        if session is not None:
            with self._lock:
                self._sessions.discard(session)
            with suppress(StoreError, OSError):
                session.close()
