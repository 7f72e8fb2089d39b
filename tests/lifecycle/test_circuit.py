"""The circuit of one type: what opens it, who gets through, and whose word counts (G14)."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chokaq.lifecycle.circuit import Circuit, CircuitEvent, CircuitPolicy, CircuitState, Forced, Permit

CLOSED, OPEN, HALF_OPEN = CircuitState
POLICY = CircuitPolicy()


def take(circuit: Circuit, now: float) -> Permit:
    """A permit that must be given."""
    permit = circuit.permit(now)
    assert permit is not None
    return permit


def fail(circuit: Circuit, now: float) -> None:
    take(circuit, now).report(False, now)


def opened(policy: CircuitPolicy = POLICY, at: float = 100.0) -> Circuit:
    """A circuit that has just opened by itself."""
    circuit = Circuit(policy)
    for _ in range(policy.failures):
        fail(circuit, at)
    assert circuit.state is OPEN
    return circuit


# ── closed ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_five_failures_in_a_row_within_a_minute_open_it_for_half_a_minute() -> None:
    circuit = Circuit(POLICY)
    for n in range(4):
        fail(circuit, 10.0 * n)
    assert (circuit.state, circuit.failures) == (CLOSED, 4)
    fail(circuit, 40.0)
    assert (circuit.state, circuit.failures, circuit.changed_at, circuit.next_probe_at) == (OPEN, 5, 40.0, 70.0)
    assert circuit.permit(69.999) is None
    assert circuit.permit(70.0) is not None


def test_failures_further_apart_than_the_window_do_not_add_up() -> None:
    circuit = Circuit(POLICY)
    for n in range(50):
        fail(circuit, 15.0 * n)
    assert (circuit.state, circuit.failures) == (CLOSED, 4)


def test_a_success_ends_the_row() -> None:
    circuit = Circuit(POLICY)
    for _ in range(4):
        fail(circuit, 1.0)
    take(circuit, 1.0).report(True, 1.0)
    assert circuit.failures == 0
    for _ in range(4):
        fail(circuit, 1.0)
    assert circuit.state is CLOSED


def test_g14_a_fatal_payload_neither_counts_nor_opens() -> None:
    """One poison payload opened a whole type in the reference. Fatal, snoozed, timed out, cancelled: no verdict."""
    circuit = Circuit(CircuitPolicy(failures=1))
    for _ in range(100):
        take(circuit, 1.0).report(None, 1.0)
    assert (circuit.state, circuit.failures, circuit.revision) == (CLOSED, 0, 0)


def test_circuits_know_nothing_of_each_other() -> None:
    one, other = opened(), Circuit(POLICY)
    assert one.permit(100.0) is None
    assert other.permit(100.0) is not None


def test_a_permit_counts_once() -> None:
    circuit = Circuit(CircuitPolicy(failures=2))
    permit = take(circuit, 1.0)
    permit.report(False, 1.0)
    permit.report(False, 1.0)
    assert (circuit.state, circuit.failures) == (CLOSED, 1)


# ── half-open ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_one_probe_at_a_time_and_its_success_closes() -> None:
    circuit = opened()
    probe = take(circuit, 130.0)
    assert (circuit.state, circuit.permit(130.0), circuit.admits(130.0)) == (HALF_OPEN, None, False)
    probe.report(True, 131.0)
    assert (circuit.state, circuit.failures, circuit.changed_at) == (CLOSED, 0, 131.0)
    assert circuit.permit(131.0) is not None


def test_a_failed_probe_opens_it_for_another_break() -> None:
    circuit = opened()
    take(circuit, 130.0).report(False, 135.0)
    assert (circuit.state, circuit.failures, circuit.next_probe_at) == (OPEN, 6, 165.0)
    assert circuit.permit(164.9) is None


def test_as_many_successes_as_probes_close_it() -> None:
    circuit = opened(CircuitPolicy(probes=3))
    probes = [take(circuit, 130.0) for _ in range(3)]
    assert circuit.permit(130.0) is None
    probes[0].report(True, 131.0)
    assert circuit.permit(131.0) is None, "three in all, not three at a time"
    probes[1].report(True, 131.0)
    assert circuit.state is HALF_OPEN
    probes[2].report(True, 131.0)
    assert circuit.state is CLOSED


def test_a_probe_without_verdict_makes_room_for_the_next() -> None:
    circuit = opened()
    take(circuit, 130.0).report(None, 131.0)
    assert circuit.state is HALF_OPEN
    take(circuit, 131.0).report(True, 132.0)
    assert circuit.state is CLOSED


def test_a_silent_probe_is_replaced_and_its_late_word_is_ignored() -> None:
    circuit = opened()
    silent = take(circuit, 130.0)
    assert circuit.permit(159.9) is None
    assert circuit.admits(160.0)
    probe = take(circuit, 160.0)
    silent.report(True, 161.0)
    assert circuit.state is HALF_OPEN
    probe.report(False, 162.0)
    assert circuit.state is OPEN
    before = circuit.revision
    silent.report(False, 163.0)
    assert circuit.revision == before


def test_a_type_whose_runs_outlast_the_probe_timeout_closes_all_the_same() -> None:
    """Each silent probe doubles the patience with the next one; in the reference such a circuit never closed."""
    circuit, now, run, probes = opened(), 130.0, 300.0, 0
    under_way: list[tuple[float, Permit]] = []
    while circuit.state is not CLOSED:
        assert now < 130.0 + 4 * run
        for done, probe in [entry for entry in under_way if entry[0] <= now]:
            under_way.remove((done, probe))
            probe.report(True, now)
        permit = circuit.permit(now) if circuit.state is not CLOSED else None
        if permit is not None:
            under_way.append((now + run, permit))
            probes += 1
        now += 1.0
    assert probes == 5


# ── stragglers ────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("asked", [101.0, 130.0])
def test_g14_a_success_begun_before_the_opening_closes_nothing(asked: float) -> None:
    circuit = Circuit(POLICY)
    straggler = take(circuit, 99.0)
    for _ in range(5):
        fail(circuit, 100.0)
    circuit.permit(asked)
    state = circuit.state
    straggler.report(True, asked)
    assert circuit.state is state
    assert state is not CLOSED


def test_failures_begun_before_the_opening_prolong_nothing_and_spoil_no_later_count() -> None:
    circuit = Circuit(POLICY)
    stragglers = [take(circuit, 99.0) for _ in range(40)]
    for _ in range(5):
        fail(circuit, 100.0)
    for late in stragglers[:20]:
        late.report(False, 120.0)
    assert circuit.next_probe_at == 130.0
    take(circuit, 130.0).report(True, 130.0)
    for late in stragglers[20:]:
        late.report(False, 131.0)
    assert (circuit.state, circuit.failures) == (CLOSED, 0)


# ── orders ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_forced_open_admits_nobody_until_it_is_cleared() -> None:
    circuit = Circuit(POLICY)
    before = take(circuit, 1.0)
    circuit.force(Forced.OPEN, 2.0)
    before.report(True, 3.0)
    assert (circuit.state, circuit.permit(1e9), circuit.admits(1e9)) == (OPEN, None, False)
    circuit.force(Forced.NO, 4.0)
    assert (circuit.state, circuit.failures) == (CLOSED, 0)
    assert circuit.permit(4.0) is not None


def test_forced_closed_admits_everybody_whatever_fails() -> None:
    circuit = opened()
    circuit.force(Forced.CLOSED, 101.0)
    for _ in range(50):
        fail(circuit, 101.0)
    assert (circuit.state, circuit.failures) == (CLOSED, 0)
    circuit.force(Forced.NO, 102.0)
    for _ in range(5):
        fail(circuit, 102.0)
    assert circuit.state is OPEN


def test_the_same_order_again_changes_nothing() -> None:
    circuit = Circuit(POLICY)
    circuit.force(Forced.OPEN, 1.0)
    before = circuit.revision
    circuit.force(Forced.OPEN, 2.0)
    assert (circuit.revision, circuit.changed_at) == (before, 1.0)


def test_a_circuit_that_is_switched_off_never_opens_but_follows_orders() -> None:
    circuit = Circuit(None)
    for _ in range(100):
        fail(circuit, 1.0)
    assert circuit.state is CLOSED
    circuit.force(Forced.OPEN, 2.0)
    assert circuit.permit(1e9) is None


# ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_every_event_is_told() -> None:
    told: list[CircuitEvent] = []
    circuit = Circuit(CircuitPolicy(failures=1), notice=told.append)
    fail(circuit, 0.0)
    take(circuit, 30.0).report(None, 31.0)
    take(circuit, 31.0)
    take(circuit, 61.0).report(True, 62.0)
    circuit.force(Forced.OPEN, 63.0)
    assert [event.name for event in told] == [
        "OPENED", "HALF_OPENED", "PROBE_TAKEN", "PROBE_RELEASED", "PROBE_TAKEN", "PROBE_EXPIRED", "PROBE_TAKEN", "CLOSED",
        "FORCED",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda: CircuitPolicy(failures=0),
        lambda: CircuitPolicy(probes=0),
        lambda: CircuitPolicy(window=0),
        lambda: CircuitPolicy(open_for=-1),
        lambda: CircuitPolicy(probe_timeout=math.inf),
        lambda: CircuitPolicy(window=math.nan),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(make: Callable[[], CircuitPolicy]) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()


@given(
    failures=st.integers(1, 8),
    runs=st.lists(st.tuples(st.floats(0, 50), st.sampled_from([True, False, None])), max_size=60),
)
def test_it_opens_exactly_when_so_many_failures_in_a_row_lie_within_the_window(
    failures: int, runs: list[tuple[float, bool | None]]
) -> None:
    circuit, now, row = Circuit(CircuitPolicy(failures=failures)), 0.0, list[float]()
    for pause, verdict in runs:
        now += pause
        permit = circuit.permit(now)
        assert permit is not None
        permit.report(verdict, now)
        if verdict is not None:
            row = [] if verdict else [*row, now]
        due = len(row) >= failures and now - row[-failures] < 60.0
        assert (circuit.state is OPEN) == due
        if due:
            return


class AnyCourse(RuleBasedStateMachine):
    """Whatever happens to a circuit, in any order: who gets through, whose word counts, and that it always comes back."""

    @initialize(failures=st.integers(1, 4), probes=st.integers(1, 3))
    def begin(self, failures: int, probes: int) -> None:
        self.policy = CircuitPolicy(failures=failures, probes=probes)
        self.circuit = Circuit(self.policy)
        self.now = 0.0
        self.held: list[tuple[Permit, CircuitState]] = []

    @rule(seconds=st.sampled_from([0.0, 1.0, 29.0, 30.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def ask(self) -> None:
        foreseen, state, due = self.circuit.admits(self.now), self.circuit.state, self.circuit.next_probe_at
        permit = self.circuit.permit(self.now)
        assert (permit is not None) == foreseen
        if state is OPEN:
            assert foreseen == (self.now >= due), "a break lasts as long as it was said to"
        if permit is not None:
            assert permit.generation == self.circuit.generation
            self.held.append((permit, self.circuit.state))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), verdict=st.sampled_from([True, False, None]))
    def report(self, data: st.DataObject, verdict: bool | None) -> None:
        permit, given_in = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        current = permit.generation == self.circuit.generation
        before = (self.circuit.state, self.circuit.failures, self.circuit.revision, self.circuit.next_probe_at)
        permit.report(verdict, self.now)
        after = (self.circuit.state, self.circuit.failures, self.circuit.revision, self.circuit.next_probe_at)
        if not current or verdict is None:
            assert after == before, "a straggler's word counts for nothing, and no verdict is none"
        if before[0] is not CLOSED and after[0] is CLOSED:
            assert given_in is HALF_OPEN, "only a probe closes a circuit"
            assert verdict

    @rule(order=st.sampled_from(list(Forced)))
    def order(self, order: Forced) -> None:
        self.circuit.force(order, self.now)

    @invariant()
    def orders_win(self) -> None:
        if self.circuit.forced is Forced.OPEN:
            assert not self.circuit.admits(self.now)
        if self.circuit.forced is Forced.CLOSED:
            assert self.circuit.admits(self.now)

    @invariant()
    def no_more_probes_than_allowed(self) -> None:
        if self.circuit.state is HALF_OPEN:
            current = [permit for permit, _ in self.held if permit.generation == self.circuit.generation]
            assert len(current) <= self.policy.probes

    @precondition(lambda self: self.circuit.forced is Forced.NO)
    @rule()
    def recover(self) -> None:
        """From wherever it is: when the world is well again, it closes."""
        self.now += self.policy.open_for + self.policy.probe_timeout * 2.0**10
        for _ in range(self.policy.probes):
            permit = self.circuit.permit(self.now)
            assert permit is not None
            permit.report(True, self.now)
        assert self.circuit.state is CLOSED


TestAnyCourse = AnyCourse.TestCase
