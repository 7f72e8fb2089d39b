"""The rule of the scale recommendation: it never swings, and never leaves its bounds."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from chokaq.lifecycle.scale import HOLDS, ScaleBounds, ScaleFigures, problem, recommend, up

COUNTS = st.integers(0, 100_000)
FIGURES = st.builds(
    ScaleFigures,
    live=st.integers(0, 500),
    settled=st.integers(0, 500),
    replica_handlers=st.integers(1, 500),
    paused=st.booleans(),
    active=st.booleans(),
    open_circuits=st.integers(0, 2),
    fleet_cap=st.none() | st.integers(1, 10_000),
    due=COUNTS,
    oldest_due_ms=st.none() | st.integers(0, 100_000),
    buffered=COUNTS,
    running=COUNTS,
    busy_handlers=COUNTS,
    mean_run_ms=st.none() | st.integers(1, 10_000_000),
    late=st.integers(0, 3),
)
BOUNDS = st.builds(
    ScaleBounds,
    min_replicas=st.integers(0, 20),
    max_replicas=st.integers(20, 10_000),
    target_lag_ms=st.integers(0, 60_000),
    catch_up_ms=st.integers(1_000, 3_600_000),
    busy_percent=st.integers(51, 100),
    idle_percent=st.integers(1, 50),
)


def with_live(figures: ScaleFigures, live: int) -> ScaleFigures:
    """The same load, served by another number."""
    return msgspec.structs.replace(figures, live=live, settled=live)


@given(FIGURES, BOUNDS)
def test_the_answer_stays_within_its_bounds(figures: ScaleFigures, bounds: ScaleBounds) -> None:
    assert problem(bounds) is None
    assert bounds.min_replicas <= recommend(figures, bounds).replicas <= bounds.max_replicas


@given(FIGURES.filter(lambda figures: figures.live > 0), BOUNDS)
def test_once_there_the_number_is_kept(figures: ScaleFigures, bounds: ScaleBounds) -> None:
    """The same load met by as many as were wanted wants no other number: it does not swing."""
    first = recommend(figures, bounds).replicas
    if first:
        assert recommend(with_live(figures, first), bounds).replicas == first


@given(FIGURES.filter(lambda figures: figures.live > 0), BOUNDS)
def test_a_load_that_stays_within_the_room_changes_nothing(figures: ScaleFigures, bounds: ScaleBounds) -> None:
    """After a rise to 80 % busy, a load that falls to five eighths of it, or jobs that wait no longer, send nobody away."""
    bounds = msgspec.structs.replace(bounds, busy_percent=80, idle_percent=50)
    figures = msgspec.structs.replace(
        figures, active=True, paused=False, open_circuits=0, fleet_cap=None, due=0, buffered=0
    )
    load = max(figures.running, figures.busy_handlers)
    there = up(load * 100, figures.replica_handlers * 80)
    if not bounds.min_replicas <= there <= bounds.max_replicas or there == 0:
        return
    for running in (up(load * 5, 8), load):
        now = msgspec.structs.replace(
            with_live(figures, there), running=running, busy_handlers=running, oldest_due_ms=None, late=0
        )
        assert recommend(now, bounds).replicas == there


@given(FIGURES, BOUNDS)
def test_it_rises_only_while_jobs_wait_and_falls_only_when_none_had_to(
    figures: ScaleFigures, bounds: ScaleBounds
) -> None:
    advice = recommend(figures, bounds)
    lags = figures.oldest_due_ms is not None and figures.oldest_due_ms > bounds.target_lag_ms
    if advice.reason == "lag":
        assert lags or figures.live == 0
        assert advice.replicas > figures.live
    if advice.reason == "idle":
        assert not lags
        assert figures.late == 0
        assert advice.replicas < figures.live
    assert advice.low <= advice.high


@given(FIGURES, BOUNDS)
def test_a_held_queue_keeps_its_number(figures: ScaleFigures, bounds: ScaleBounds) -> None:
    advice = recommend(msgspec.structs.replace(figures, open_circuits=1), bounds)
    if bounds.min_replicas <= figures.settled <= bounds.max_replicas:
        assert advice.replicas == figures.settled
        assert advice.reason in HOLDS


@given(FIGURES, BOUNDS)
def test_what_waits_never_calls_for_more_handlers_than_jobs(figures: ScaleFigures, bounds: ScaleBounds) -> None:
    waiting = figures.due + figures.buffered
    most = max(figures.running, figures.busy_handlers) + waiting
    assert recommend(figures, bounds).low <= max(1, up(most * 100, figures.replica_handlers * bounds.busy_percent))


def test_the_readme_of_the_rule() -> None:
    """150 handlers on three replicas, all busy, 1,200 jobs of 2 s wait too long: 150 + 40 handlers, 80 % busy."""
    figures = ScaleFigures(
        live=3, settled=3, replica_handlers=50, due=1_200, oldest_due_ms=14_000, running=150, mean_run_ms=2_000
    )
    assert recommend(figures, ScaleBounds()).replicas == 5
