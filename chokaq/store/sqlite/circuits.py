"""Circuits: ReportCircuits, ReadCircuitOrders, ListCircuits, ListCircuitEvents, ForceCircuit."""

from collections.abc import Sequence
from typing import Any

import msgspec

from chokaq.lifecycle.circuit import Forced
from chokaq.store.circuits import (
    MAX_EVENTS,
    CircuitChange,
    CircuitEvent,
    CircuitList,
    CircuitOrder,
    CircuitOrders,
    EventPlace,
)
from chokaq.store.names import check_name, check_text
from chokaq.store.records import Registration
from chokaq.store.sqlite.clock import now_ms
from chokaq.store.sqlite.connection import Connected, bounded
from chokaq.store.sqlite.statements import load
from chokaq.store.sqlite.views import VIEWS

_REPORT, _READ, _LIST, _FORCE = (
    load(name) for name in ("ReportCircuits", "ReadCircuitOrders", "ListCircuits", "ForceCircuit")
)
_EVENTS = load("ListCircuitEvents")["list"]
_LAST_MS = 1 << 60
"""Later than any instant."""


class CircuitOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def report_circuits(self, worker: Registration, changes: Sequence[CircuitChange]) -> None:
        """How a child's circuits stand now."""
        bounded(changes)
        for change in changes:
            check_name("type key", change.type_key)
            check_text("error type", change.last_error)
        if not changes:
            return
        with self._writing() as (connection, now):
            row = connection.execute(_REPORT["live"], {"worker": worker.worker_id}).fetchone()
            if row is None:
                return
            queue, host = row
            circuits = [
                {
                    "worker": worker.worker_id,
                    "type": change.type_key.lower(),
                    "queue": queue,
                    "host": host,
                    "state": int(change.state),
                    "failures": change.failures,
                    "generation": change.generation,
                    "changed": now - change.changed_ms,
                    "probe": None if change.next_probe_ms is None else now + change.next_probe_ms,
                    "error": change.last_error,
                }
                for change in changes
            ]
            connection.executemany(_REPORT["event"], circuits)
            connection.executemany(_REPORT["write"], circuits)

    def read_circuit_orders(self) -> CircuitOrders:
        """The orders in force."""
        number = self._select(_READ["number"])
        return CircuitOrders(
            number[0][0] if number else 0, [VIEWS.circuit_order(row) for row in self._select(_READ["orders"])]
        )

    def list_circuits(self) -> CircuitList:
        """What live workers last said, and the orders in force."""
        now = now_ms()
        return CircuitList(
            [
                VIEWS.circuit(row, None if row[8] is None else max(row[8] - now, 0))
                for row in self._select(_LIST["circuits"])
            ],
            [VIEWS.circuit_order(row) for row in self._select(_LIST["orders"])],
        )

    def list_circuit_events(
        self,
        type_key: str,
        limit: int = 50,
        after: EventPlace | None = None,
        *,
        since_ms: int | None = None,
        tries: bool = True,
    ) -> list[CircuitEvent]:
        """What the circuits of a type did and what was ordered about it, newest first."""
        key = {
            "type": check_name("type key", type_key).lower(),
            "since": 0 if since_ms is None else now_ms() - since_ms,
            "after_ms": _LAST_MS if after is None else after.at_ms,
            "after": 0 if after is None else after.id,
            "tries": tries,
            "limit": max(1, min(limit, MAX_EVENTS)),
        }
        return [VIEWS.circuit_event(row) for row in self._select(_EVENTS, key)]

    def force_circuit(
        self, type_key: str, forced: Forced, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> CircuitOrder:
        """Order the circuits of a type everywhere, audited with before and after."""
        key: dict[str, Any] = {
            "type": check_name("type key", type_key).lower(),
            "forced": int(forced),
            "actor": check_text("actor", actor),
            "reason": check_text("reason", reason) or None,
            "request": request,
        }
        with self._writing() as (connection, now):
            key["now"] = now
            if request is None or connection.execute(_FORCE["repeat"], key).fetchone() is None:
                before = connection.execute(_FORCE["before"], key).fetchone()
                key["number"] = connection.execute(_FORCE["ticket"], key).fetchone()[0]
                key["before"] = _state(Forced.NO if before is None else Forced(before[0]))
                key["after"] = _state(forced)
                connection.execute(_FORCE["write"], key)
                connection.execute(_FORCE["audit"], key)
                connection.execute(_FORCE["event"], key)
            return VIEWS.circuit_order(connection.execute(_FORCE["current"], key).fetchone())


def _state(forced: Forced) -> str:
    return msgspec.json.encode({"forced": None if forced is Forced.NO else forced.name.lower()}).decode()
