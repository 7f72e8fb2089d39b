"""The breakers of a child apart from it: how long the denied wait, what is reported, which orders stand."""

from datetime import UTC, datetime

from chokaq.config.settings import Policy
from chokaq.lifecycle.circuit import CircuitPolicy, CircuitState, Forced
from chokaq.store.circuits import CircuitOrder
from chokaq.store.records import FetchedJob
from chokaq.worker.breakers import LATEST, PER_SECOND, Breaker, Breakers, circuit_policy
from chokaq.worker.buffer import Buffer
from chokaq.worker.claims import Claim

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def order(type_key: str, forced: Forced) -> CircuitOrder:
    return CircuitOrder(type_key=type_key, forced=forced, actor="ann", reason=None, at=NOW, number=1)


def breaker(policy: Policy, shut: list[Breaker] | None = None) -> Breaker:
    told = [] if shut is None else shut
    return Breaker("t", policy, 0.0, told.append)


def claim(number: int, of: Breaker, crashes: int = 0) -> Claim:
    job = FetchedJob(f"{number:026}", "t", "{}", 1, 10, 0, crashes, NOW, NOW, 0)
    return Claim(job, Policy(), None, 0.0, of)


def test_the_denied_wait_for_the_delay_as_long_as_they_are_few() -> None:
    one = breaker(Policy(circuit_delay=5.0))
    assert {one.delay_ms(100.0) for _ in range(5 * PER_SECOND)} == {5_000}
    assert {one.delay_ms(200.0 + n) for n in range(100)} == {5_000}


def test_a_backlog_comes_back_at_a_bounded_pace_and_within_a_minute() -> None:
    one = breaker(Policy(circuit_delay=5.0))
    delays = [one.delay_ms(100.0) for _ in range(20_000)]
    assert delays == sorted(delays)
    assert delays[-1] == LATEST * 1000
    for second in range(6, 59):
        coming = sum(second * 1000 <= delay < (second + 1) * 1000 for delay in delays)
        assert abs(coming - PER_SECOND) <= 1


def test_a_delay_above_the_minute_holds() -> None:
    one = breaker(Policy(circuit_delay=300.0))
    assert {one.delay_ms(1.0) for _ in range(1_000)} == {300_000}


def test_a_policy_tells_all_numbers_or_that_there_is_no_circuit() -> None:
    chosen = circuit_policy(
        Policy(circuit_failures=2, circuit_window=3, circuit_open=4, circuit_probes=5, circuit_probe_timeout=6)
    )
    assert isinstance(chosen, CircuitPolicy)
    assert (chosen.failures, chosen.window, chosen.open_for, chosen.probes, chosen.probe_timeout) == (2, 3, 4, 5, 6)
    assert circuit_policy(Policy(circuit=False)) is None


def test_opening_is_told_at_once_and_so_is_an_order_to_open() -> None:
    shut: list[Breaker] = []
    one = breaker(Policy(circuit_failures=1), shut)
    permit = one.circuit.permit(1.0)
    assert permit is not None
    permit.report(False, 1.0)
    assert shut == [one]
    one.circuit.force(Forced.CLOSED, 2.0)
    assert shut == [one]
    one.circuit.force(Forced.OPEN, 3.0)
    assert shut == [one, one]


def test_a_type_has_one_breaker_in_any_case() -> None:
    breakers = Breakers(lambda _breaker: None)
    assert breakers.of("Email.V1", Policy()) is breakers.of("email.v1", Policy())


def test_the_last_orders_stand_for_types_met_before_and_after() -> None:
    breakers = Breakers(lambda _breaker: None)
    early = breakers.of("early", Policy())
    breakers.obey([order("early", Forced.OPEN), order("late", Forced.OPEN)], 1.0)
    late = breakers.of("LATE", Policy())
    assert (early.circuit.forced, late.circuit.forced) == (Forced.OPEN, Forced.OPEN)
    breakers.obey([order("late", Forced.CLOSED)], 2.0)
    assert (early.circuit.forced, late.circuit.forced) == (Forced.NO, Forced.CLOSED)


def test_only_what_looks_different_is_reported() -> None:
    breakers = Breakers(lambda _breaker: None)
    one, other = breakers.of("one", Policy()), breakers.of("other", Policy())
    assert breakers.unreported(9) == []
    permit = one.circuit.permit(1.0)
    assert permit is not None
    permit.report(False, 1.0)
    assert breakers.unreported(9) == [one]
    one.reported = one.circuit.revision
    assert breakers.unreported(9) == []
    breakers.obey([order("one", Forced.OPEN), order("other", Forced.OPEN)], 2.0)
    assert breakers.unreported(9) == [one, other]
    assert breakers.unreported(1) == [one]
    change = other.change(5.0)
    assert (change.state, change.changed_ms, change.next_probe_ms) == (CircuitState.OPEN, 3_000, None)


def test_the_buffer_gives_out_one_type_and_keeps_the_order_of_the_rest() -> None:
    buffer, one, other = Buffer(), breaker(Policy()), breaker(Policy())
    claims = [claim(n, one if n % 2 else other, crashes=int(n > 6)) for n in range(10)]
    for held in claims:
        buffer.push(held)
    assert {held.job.id for held in buffer.take_out(one)} == {held.job.id for held in claims[1::2]}
    assert buffer.take_out(one) == []
    assert len(buffer) == 5
    assert buffer.suspects == 1
    rest = [buffer.pop(suspects=False) for _ in range(4)]
    assert rest == [claims[0], claims[2], claims[4], claims[6]]
