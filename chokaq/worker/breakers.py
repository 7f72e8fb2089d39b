"""The circuit breakers of a child: one per job type it has met, with the orders of operators over them. Event loop only."""

import math
import time
from collections.abc import Callable, Iterable

import structlog

from chokaq.config.settings import Policy
from chokaq.lifecycle.circuit import Circuit, CircuitEvent, CircuitPolicy, CircuitState, Forced
from chokaq.store.circuits import CircuitChange, CircuitOrder

_log = structlog.get_logger("chokaq")
_SHUTTING = (CircuitEvent.OPENED, CircuitEvent.FORCED)
PER_SECOND = 100
"""So many denied jobs of a type may come back per second and child: a backlog must not travel to and fro at full speed."""
Told = Callable[[str, CircuitState, CircuitEvent], None]
"""Given a type key, the state after an event, and the event."""
LATEST = 60.0
"""No denied job is put off for longer, unless circuit_delay says so: once the circuit closes the backlog has to come back."""


class Breaker:
    """The circuit of one type, and how long those it denies have to wait."""

    __slots__ = ("_delay", "_shut", "_told", "_turn", "circuit", "last_error", "reported", "type_key")

    def __init__(
        self, type_key: str, policy: Policy, now: float, shut: Callable[["Breaker"], None], told: Told | None = None
    ) -> None:
        """`shut` is called when the circuit begins to deny jobs; `told`, if given, with every event."""
        self.type_key = type_key
        self.circuit = Circuit(circuit_policy(policy), now, self._heard)
        self.last_error: str | None = None
        """Type of the last error that counted."""
        self.reported = 0
        """The circuit's revision as the store knows it."""
        self._delay = policy.circuit_delay
        self._turn = -math.inf
        self._shut = shut
        self._told = told

    def delay_ms(self, now: float) -> int:
        """How long the next denied job waits: circuit_delay, or until its turn when very many are denied."""
        self._turn = min(max(self._turn + 1 / PER_SECOND, now), now + max(LATEST, self._delay))
        return round(max(self._delay, self._turn - now) * 1000)

    def change(self, now: float) -> CircuitChange:
        """How the circuit stands, for the store."""
        circuit = self.circuit
        waits = circuit.state is CircuitState.OPEN and circuit.next_probe_at < math.inf
        return CircuitChange(
            type_key=self.type_key,
            state=circuit.state,
            failures=circuit.failures,
            generation=circuit.generation,
            changed_ms=round(max(0.0, now - circuit.changed_at) * 1000),
            next_probe_ms=round(max(0.0, circuit.next_probe_at - now) * 1000) if waits else None,
            last_error=self.last_error,
        )

    def _heard(self, event: CircuitEvent) -> None:
        _tell(event, self.type_key, self.circuit)
        if self._told is not None:
            self._told(self.type_key, self.circuit.state, event)
        if event in _SHUTTING and self.circuit.state is CircuitState.OPEN:
            self._shut(self)


def _tell(event: CircuitEvent, type_key: str, circuit: Circuit) -> None:
    match event:
        case CircuitEvent.OPENED:
            _log.warning("circuit_opened", type=type_key, failures=circuit.failures)
        case CircuitEvent.HALF_OPENED:
            _log.info("circuit_half_opened", type=type_key, failures=circuit.failures)
        case CircuitEvent.CLOSED:
            _log.info("circuit_closed", type=type_key, failures=circuit.failures)
        case CircuitEvent.PROBE_EXPIRED:
            _log.warning("circuit_probe_expired", type=type_key, failures=circuit.failures)
        case CircuitEvent.FORCED:
            forced = circuit.forced.name.lower()
            _log.warning("circuit_forced", type=type_key, failures=circuit.failures, forced=forced)
        case _:
            # Told per job (circuit_rejected), or of no use to anybody.
            pass


class Breakers:
    """All of them, by type key in lower case."""

    def __init__(self, shut: Callable[[Breaker], None]) -> None:
        """`shut` is called with a breaker that begins to deny jobs."""
        self._shut = shut
        self._known: dict[str, Breaker] = {}
        self._orders: dict[str, Forced] = {}
        self.told: Told | None = None
        """Told of every event of the breakers made from now on."""

    def of(self, type_key: str, policy: Policy) -> Breaker:
        """The breaker of a type, made when it is met for the first time, under the order that stands."""
        key = type_key.lower()
        breaker = self._known.get(key)
        if breaker is None:
            now = time.monotonic()
            breaker = self._known[key] = Breaker(key, policy, now, self._shut, self.told)
            breaker.circuit.force(self._orders.get(key, Forced.NO), now)
        return breaker

    def obey(self, orders: Iterable[CircuitOrder], now: float) -> None:
        """These orders stand from now on, and no others."""
        self._orders = {order.type_key: order.forced for order in orders}
        for key, breaker in self._known.items():
            breaker.circuit.force(self._orders.get(key, Forced.NO), now)

    def unreported(self, most: int) -> list[Breaker]:
        """Breakers that look different from what the store knows, at most so many."""
        return [breaker for breaker in self._known.values() if breaker.reported != breaker.circuit.revision][:most]


def circuit_policy(policy: Policy) -> CircuitPolicy | None:
    """The circuit's part of a policy; None when it is switched off."""
    if not policy.circuit:
        return None
    return CircuitPolicy(
        failures=policy.circuit_failures,
        window=policy.circuit_window,
        open_for=policy.circuit_open,
        probes=policy.circuit_probes,
        probe_timeout=policy.circuit_probe_timeout,
    )
