"""What goes to and fro about circuits between a child and the fleet: how its own stand, and what operators order.

Both go over the claim lane, which makes one call after the other. So an order is known before the fetch after the one that told
of it, and a child that boots knows the orders before its first job.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import structlog

from chokaq.store.circuits import CircuitChange, CircuitOrders
from chokaq.store.protocol import MAX_JOBS_PER_CALL, Session
from chokaq.store.records import Registration
from chokaq.worker.breakers import Breaker, Breakers
from chokaq.worker.lane import CallLane

_log = structlog.get_logger("chokaq")
REPORT_EVERY = 1.0
"""Seconds between two reports at least; nothing is sent while nothing changes."""
_REFUSED_PAUSE = 5.0


class CircuitNews:
    """One child's exchange. Event loop only."""

    def __init__(self, lane: CallLane, worker: Registration, breakers: Breakers, obeyed: Callable[[], None]) -> None:
        """`obeyed` is called when other orders stand than before."""
        self._lane = lane
        self._worker = worker
        self._breakers = breakers
        self._obeyed = obeyed
        self._order = 0
        """Number of the latest order known."""
        self._reading: asyncio.Future[CircuitOrders] | None = None
        self._reporting: asyncio.Future[None] | None = None
        self._read_from = self._report_from = -REPORT_EVERY

    def told(self, order: int) -> None:
        """A fetch has told the number of the latest order."""
        if order != self._order and self._reading is None and time.monotonic() >= self._read_from:
            self._reading = self._lane.call("read_circuit_orders", lambda session: session.read_circuit_orders())
            self._reading.add_done_callback(self._read)

    def turn(self) -> None:
        """Several times a second: report what has changed."""
        now = time.monotonic()
        if self._reporting is not None or now < self._report_from:
            return
        changed = self._breakers.unreported(MAX_JOBS_PER_CALL)
        if changed:
            told = [(breaker, breaker.circuit.revision) for breaker in changed]
            changes = [breaker.change(now) for breaker in changed]
            self._report_from = now + REPORT_EVERY
            self._reporting = self._lane.call("report_circuits", partial(_report, self._worker, changes))
            self._reporting.add_done_callback(partial(self._reported, told))

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _read(self, answer: "asyncio.Future[CircuitOrders]") -> None:
        self._reading = None
        if (error := answer.exception()) is not None:
            self._read_from = time.monotonic() + _REFUSED_PAUSE
            _log.error("circuit_orders_refused", error=str(error))
            return
        known = answer.result()
        self._order = known.number
        self._breakers.obey(known.orders, time.monotonic())
        self._obeyed()

    def _reported(self, told: list[tuple[Breaker, int]], answer: "asyncio.Future[None]") -> None:
        self._reporting = None
        if (error := answer.exception()) is not None:
            self._report_from = time.monotonic() + _REFUSED_PAUSE
            _log.error("circuit_report_refused", error=str(error))
            return
        for breaker, revision in told:
            breaker.reported = revision


def _report(worker: Registration, changes: list[CircuitChange], session: Session) -> None:
    session.report_circuits(worker, changes)
