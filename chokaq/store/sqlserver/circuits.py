"""Circuits: ReportCircuits, ReadCircuitOrders, ListCircuits, ListCircuitEvents, ForceCircuit."""

from collections.abc import Sequence
from typing import Any

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
from chokaq.store.sqlserver import documents
from chokaq.store.sqlserver.calling import Calling
from chokaq.store.sqlserver.views import VIEWS

_INT = 2_147_483_647


class CircuitOperations(Calling):
    """See `chokaq.store.protocol.Session`."""

    def report_circuits(self, worker: Registration, changes: Sequence[CircuitChange]) -> None:
        """How a child's circuits stand now."""
        documents.bounded(changes)
        self._call("ReportCircuits", worker.worker_id, *_document(changes))

    def read_circuit_orders(self) -> CircuitOrders:
        """The orders in force."""
        [[number]], rows = self._call("ReadCircuitOrders")
        return CircuitOrders(number, [VIEWS.circuit_order(row) for row in rows])

    def list_circuits(self) -> CircuitList:
        """What live workers last said, and the orders in force."""
        circuits, orders = self._call("ListCircuits")
        return CircuitList(
            [VIEWS.circuit(row, row[8]) for row in circuits], [VIEWS.circuit_order(row) for row in orders]
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
        check_name("type key", type_key)
        [rows] = self._call(
            "ListCircuitEvents",
            type_key.lower(),
            max(1, min(limit, MAX_EVENTS)),
            0 if after is None else after.at_ms,
            0 if after is None else after.id,
            -1 if since_ms is None else since_ms,
            tries,
        )
        return [VIEWS.circuit_event(row) for row in rows]

    def force_circuit(
        self, type_key: str, forced: Forced, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> CircuitOrder:
        """Order the circuits of a type everywhere, audited with before and after."""
        check_name("type key", type_key)
        documents.fitting("actor", actor, 100)
        documents.fitting("reason", reason, 1_000)
        [[row]] = self._call("ForceCircuit", type_key.lower(), int(forced), actor, reason or "", request or "")
        return VIEWS.circuit_order(row)


def _document(changes: Sequence[CircuitChange]) -> tuple[str, str]:
    """Mapping characters and document of ReportCircuits."""
    for change in changes:
        check_name("type key", change.type_key)
        check_text("error type", change.last_error)
    mapped = documents.Mapping(text for change in changes for text in (change.type_key, change.last_error))
    rows: dict[str, dict[str, Any]] = {}
    for change in changes:
        row: dict[str, Any] = {
            "t": mapped(change.type_key.lower()), "s": int(change.state), "f": min(change.failures, _INT),
            "g": change.generation, "c": max(0, min(change.changed_ms, _INT)),
        }  # fmt: skip
        if change.next_probe_ms is not None:
            row["n"] = max(0, min(change.next_probe_ms, _INT))
        if change.last_error is not None:
            row["e"] = mapped(documents.cut(change.last_error, documents.TYPE_LIMIT))
        rows[change.type_key.lower()] = row
    return mapped.carriers, documents.dump(list(rows.values()))
