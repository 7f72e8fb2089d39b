"""The circuit breaker of one job type in one process (design §8). Pure: time comes in, in seconds of any steady clock.

Closed: runs are admitted; so many failures in a row within a window open it. Open: nothing is admitted until the break is over.
Half-open: a few probes are admitted; as many successes close it, one failure opens it again.

What counts is what a run says of the world behind its handler. A success and a failure (transient or throttled) do. A fatal
payload, a snooze, a timeout, a cancellation, a lost lease and a shutdown say nothing: their permits go back without a verdict.

Every permit carries the generation in which it was given, and each change of state begins another one. A report from an older
generation is ignored: a straggler that began before the opening neither closes the circuit nor counts against a later one.
"""

import math
from collections import deque
from collections.abc import Callable
from enum import IntEnum, StrEnum

_MOST_DOUBLINGS = 10


class CircuitState(IntEnum):
    """What a circuit does with the jobs of its type. Stable: stored."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


_CLOSED, _OPEN, _HALF_OPEN = CircuitState
"""The members as plain names: a look into an enum is not free, and every job asks."""


class Forced(IntEnum):
    """An operator's order. Stable: stored."""

    NO = 0
    """None: the circuit follows its own rule."""
    OPEN = 1
    CLOSED = 2


class CircuitEvent(StrEnum):
    """What a circuit tells its listener."""

    OPENED = "opened"
    HALF_OPENED = "half_opened"
    CLOSED = "closed"
    PROBE_TAKEN = "probe_taken"
    PROBE_RELEASED = "probe_released"
    """A probe ended without a verdict: another may be taken."""
    PROBE_EXPIRED = "probe_expired"
    """A probe has said nothing for too long: what it says later is ignored."""
    FORCED = "forced"
    """An order came, changed or went."""


class CircuitPolicy:
    """The numbers of a circuit."""

    __slots__ = ("failures", "open_for", "probe_timeout", "probes", "window")

    def __init__(
        self,
        *,
        failures: int = 5,
        window: float = 60.0,
        open_for: float = 30.0,
        probes: int = 1,
        probe_timeout: float = 30.0,
    ) -> None:
        """`failures` in a row within `window` seconds open the circuit for `open_for` seconds; then `probes` runs at most are
        tried, each for `probe_timeout` seconds. Raises ValueError for a number that makes no sense.
        """
        for name, count in (("failures", failures), ("probes", probes)):
            if count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}")
        for name, seconds in (("window", window), ("open_for", open_for), ("probe_timeout", probe_timeout)):
            if not 0 < seconds < math.inf:
                raise ValueError(f"{name} must be a number of seconds above 0, got {seconds}")
        self.failures = failures
        self.window = window
        self.open_for = open_for
        self.probes = probes
        self.probe_timeout = probe_timeout


class Permit:
    """The right to run one job. Report once how it ended; a second report is ignored."""

    __slots__ = ("_circuit", "generation", "given_at")

    def __init__(self, circuit: "Circuit", generation: int, given_at: float) -> None:
        self._circuit: Circuit | None = circuit
        self.generation = generation
        self.given_at = given_at

    def report(self, verdict: bool | None, now: float) -> None:
        """`verdict`: True for a success, False for a failure, None when the run says nothing about its type."""
        circuit, self._circuit = self._circuit, None
        if circuit is not None and self.generation == circuit.generation:
            circuit._reported(self, verdict, now)


class Circuit:
    """One circuit. Not thread-safe."""

    __slots__ = (
        "_expired", "_failed_at", "_notice", "_policy", "_probing", "_successes", "changed_at", "failures", "forced",
        "generation", "next_probe_at", "revision", "state",
    )  # fmt: skip

    def __init__(
        self, policy: CircuitPolicy | None, now: float = 0.0, notice: Callable[[CircuitEvent], None] | None = None
    ) -> None:
        """Closed. `policy` None: it never opens by itself, and follows orders only. `notice`: told of every event, at once."""
        self._policy = policy
        self._notice = notice
        self._failed_at: deque[float] = deque(maxlen=policy.failures if policy is not None else 1)
        self._probing: list[Permit] = []
        """Probes under way, the oldest first."""
        self._successes = 0
        self._expired = 0
        """Probes that expired since the opening: each one doubles the patience with the next."""
        self.state = _CLOSED
        self.forced = Forced.NO
        self.generation = 0
        """Rises with every change of state, with every order and with every probe that expires."""
        self.failures = 0
        """Closed: failures in a row within the window, as of the last one; otherwise those since it was last closed."""
        self.changed_at = now
        """When the state was entered."""
        self.next_probe_at = math.inf
        """Open: when the first probe is admitted; inf: not by itself."""
        self.revision = 0
        """Rises with everything an onlooker can see."""

    # ── permits ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def permit(self, now: float) -> Permit | None:
        """The permit to run a job now; None: denied. The first request after the break makes the circuit half-open."""
        if self.state is _CLOSED:
            return Permit(self, self.generation, now)
        if self.state is _OPEN:
            if now < self.next_probe_at:
                return None
            self._enter(_HALF_OPEN, now, CircuitEvent.HALF_OPENED)
        elif self._overdue(now):
            self._expire()
        if not self._has_room():
            return None
        probe = Permit(self, self.generation, now)
        self._probing.append(probe)
        self._tell(CircuitEvent.PROBE_TAKEN)
        return probe

    def admits(self, now: float) -> bool:
        """True when `permit` would give one now. Changes nothing."""
        if self.state is _CLOSED:
            return True
        if self.state is _OPEN:
            return now >= self.next_probe_at
        return self._has_room() or self._overdue(now)

    # ── orders ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def force(self, order: Forced, now: float) -> None:
        """Follow an order until the next one; while one stands, reports are ignored. `Forced.NO` begins afresh, closed."""
        if order is self.forced:
            return
        self.forced = order
        self.failures = 0
        self._failed_at.clear()
        state = _OPEN if order is Forced.OPEN else _CLOSED
        self._enter(state, now, CircuitEvent.FORCED)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _reported(self, permit: Permit, verdict: bool | None, now: float) -> None:
        """A report from this generation: nothing has changed since its permit was given."""
        if self.state is _HALF_OPEN:
            self._probed(permit, verdict, now)
        elif verdict:
            if self.failures:
                self.failures = 0
                self._failed_at.clear()
                self.revision += 1
        elif verdict is not None and self._policy is not None and self.forced is Forced.NO:
            self._count(self._policy, now)

    def _count(self, policy: CircuitPolicy, now: float) -> None:
        failed_at = self._failed_at
        failed_at.append(now)
        while now - failed_at[0] >= policy.window:
            failed_at.popleft()
        self.failures = len(failed_at)
        self.revision += 1
        if self.failures >= policy.failures:
            self._open(policy, now)

    def _probed(self, probe: Permit, verdict: bool | None, now: float) -> None:
        policy = self._policy
        assert policy is not None
        self._probing.remove(probe)
        if verdict is None:
            self._tell(CircuitEvent.PROBE_RELEASED)
        elif not verdict:
            self.failures += 1
            self._open(policy, now)
        else:
            self._successes += 1
            if self._successes >= policy.probes:
                self.failures = 0
                self._enter(_CLOSED, now, CircuitEvent.CLOSED)

    def _open(self, policy: CircuitPolicy, now: float) -> None:
        self._failed_at.clear()
        self._enter(_OPEN, now, CircuitEvent.OPENED, now + policy.open_for)

    def _enter(self, state: CircuitState, now: float, event: CircuitEvent, next_probe_at: float = math.inf) -> None:
        self.state = state
        self.changed_at = now
        self.next_probe_at = next_probe_at
        self._expired = 0
        self._begin_generation()
        self._tell(event)

    def _begin_generation(self) -> None:
        self.generation += 1
        self.revision += 1
        self._successes = 0
        self._probing.clear()

    def _has_room(self) -> bool:
        return self._policy is not None and len(self._probing) + self._successes < self._policy.probes

    def _overdue(self, now: float) -> bool:
        """The oldest probe has been silent for too long. Patience doubles each time: a type whose runs take longer than the
        timeout would never close its circuit otherwise, since late reports do not count.
        """
        if self._policy is None or not self._probing:
            return False
        patience = self._policy.probe_timeout * 2.0 ** min(self._expired, _MOST_DOUBLINGS)
        return now - self._probing[0].given_at >= patience

    def _expire(self) -> None:
        self._expired += 1
        self._begin_generation()
        self._tell(CircuitEvent.PROBE_EXPIRED)

    def _tell(self, event: CircuitEvent) -> None:
        if self._notice is not None:
            self._notice(event)
