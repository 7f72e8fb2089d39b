"""The claim lane's operation: FetchJobs."""

import sqlite3
from typing import Any

import orjson

from chokaq.store.records import Cancellation, Fetch, FetchedJob, Registration
from chokaq.store.sqlite.clock import from_ms, now_ms
from chokaq.store.sqlite.connection import Connected, document
from chokaq.store.sqlite.statements import load
from chokaq.store.views import live_queue

_SQL = load("FetchJobs")
_STATE, _CANCELLATIONS = _SQL["state"], _SQL["cancellations"]
_TICKET, _RAISE, _AGAIN, _LEASES = _SQL["ticket"], _SQL["raise"], _SQL["again"], _SQL["leases"]
_PROMOTE, _READY, _CLAIM, _PAYLOADS = _SQL["promote"], _SQL["ready"], _SQL["claim"], _SQL["payloads"]

_Row = list[Any]
"""A job as `ready` and `again` give it, its row id first; the payload None when it is a large one."""


class _State:
    """One row of the `state` statement."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        last, ended, *overrides, ready, next_due, asked, draining, circuit_order = row
        self.retired = last is None or ended is not None
        self.last_request: int = last or 0
        self.live = live_queue(overrides)
        self.ready = bool(ready)
        self.next_due: int | None = next_due
        self.cancellations_wait = bool(asked)
        self.draining = bool(draining)
        self.circuit_order: int = circuit_order

    def cap(self, fleet_cap: int | None) -> int | None:
        """The cap on leases in force: the operators' override wins over the YAML's."""
        override = self.live.fleet_max_workers
        return fleet_cap if override is None else override

    @property
    def open(self) -> bool:
        """Jobs may be claimed."""
        return self.live.active and not self.live.paused

    def due(self, now: int) -> bool:
        """Rows wait whose due time has come."""
        return self.next_due is not None and self.next_due <= now

    def next_due_ms(self, now: int) -> int | None:
        """As `Fetch.next_due_ms` says."""
        if self.ready:
            return 0
        return None if self.next_due is None else max(self.next_due - now, 0)


class FetchOperation(Connected):
    """See `chokaq.store.protocol.Session`."""

    def fetch_jobs(self, worker: Registration, request: int, size: int, fleet_cap: int | None = None) -> Fetch:
        """Claim up to `size` ready jobs of the worker's queue; writes nothing when there is nothing to claim."""
        key: dict[str, Any] = {
            "queue": worker.queue,
            "worker": worker.worker_id,
            "request": request,
            "size": size,
        }
        with self._reading() as connection:
            state, now = _state(connection, key), now_ms()
            key["now"] = now
            if state.retired:
                return _answer(connection, key, state, [])
            if request <= state.last_request:
                return _answer(connection, key, state, _again(connection, key))
            if size <= 0 or not state.open or not (state.ready or state.due(now)):
                return _answer(connection, key, state, [])
            if _room(connection, key, state.cap(fleet_cap)) == 0:
                return _answer(connection, key, state, [])
        with self._writing() as (connection, now):
            key["now"] = now
            return self._claim(connection, key, fleet_cap)

    def _claim(self, connection: sqlite3.Connection, key: dict[str, Any], fleet_cap: int | None) -> Fetch:
        state = _state(connection, key)
        cap = state.cap(fleet_cap)
        if cap is not None:
            connection.execute(_TICKET, key)
        if connection.execute(_RAISE, key).rowcount == 0:
            return _answer(connection, key, state, [] if state.retired else _again(connection, key))
        if not state.open:
            return _answer(connection, key, state, [])
        if state.due(key["now"]):
            connection.execute(_PROMOTE, key)
        key["size"] = _room(connection, key, cap)
        rows: list[_Row] = []
        if key["size"] > 0:
            jobs, row_ids = connection.execute(_READY, key).fetchone()
            rows = orjson.loads(jobs)
            if rows:
                connection.execute(_CLAIM, key | {"rows": row_ids})
        return _answer(connection, key, _state(connection, key), rows)


def _state(connection: sqlite3.Connection, key: dict[str, Any]) -> _State:
    return _State(connection.execute(_STATE, key).fetchone())


def _room(connection: sqlite3.Connection, key: dict[str, Any], cap: int | None) -> int:
    """How many jobs may be claimed now: the size asked for, within the cap less the leases held."""
    size: int = key["size"]
    if cap is None:
        return size
    held: int = connection.execute(_LEASES, key | {"cap": cap}).fetchone()[0]
    return min(size, max(cap - held, 0))


def _again(connection: sqlite3.Connection, key: dict[str, Any]) -> list[_Row]:
    rows: list[_Row] = orjson.loads(connection.execute(_AGAIN, key).fetchone()[0])
    return rows


def _jobs(connection: sqlite3.Connection, rows: list[_Row]) -> list[FetchedJob]:
    large = [row[0] for row in rows if row[3] is None]
    if large:
        payloads = dict(connection.execute(_PAYLOADS, {"rows": document(large)}).fetchall())
        for row in rows:
            if row[3] is None:
                row[3] = payloads[row[0]]
    return [
        FetchedJob(
            job_id, type_key, payload, lease, priority, attempts, crashes, (at := from_ms(created)),
            at if due == created else from_ms(due), age, tags, created_by, headers,
        )
        for _, job_id, type_key, payload, lease, priority, attempts, crashes, created, due, age, tags, created_by, headers in rows
    ]  # fmt: skip


def _answer(connection: sqlite3.Connection, key: dict[str, Any], state: _State, rows: list[_Row]) -> Fetch:
    jobs = _jobs(connection, rows)
    asked = connection.execute(_CANCELLATIONS, key).fetchall() if state.cancellations_wait else []
    told = [Cancellation(*row) for row in asked]
    next_due = state.next_due_ms(key["now"])
    return Fetch(state.retired, jobs, state.live, told, next_due, state.draining, state.circuit_order)
