"""The rules of health: facts and limits in, verdicts out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.observe.facts import ChildFacts, DatabaseFacts, LagFacts, QueueFacts, SchemaFacts
from chokaq.observe.health import (
    Check,
    Health,
    judge_database,
    judge_lag,
    judge_loops,
    judge_maintenance,
    judge_phase,
    judge_reach,
    judge_schema,
    judge_supervisor,
    judge_workers,
    together,
    worst,
)

HEALTHY, DEGRADED, UNHEALTHY = Health.HEALTHY, Health.DEGRADED, Health.UNHEALTHY
LIVE = ChildFacts(name="q#0", ready=True, silent=0.2)
BOOTING = ChildFacts(name="q#0")
GONE = ChildFacts(name="q#0", here=False)
SILENT = ChildFacts(name="q#0", ready=True, silent=31.0)
LEAVING = ChildFacts(name="q#0", ready=False, silent=0.1)
CUT_OFF = ChildFacts(name="q#0", ready=True, silent=0.1, reaches_store=False)
WAITING = ChildFacts(name="q#0", reaches_store=False)


def queue(*children: ChildFacts, name: str = "q") -> QueueFacts:
    """A queue with these children."""
    return QueueFacts(name, list(children))


# ── the supervisor and its phase ──────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("silent", "status"), [(0.0, HEALTHY), (15.0, HEALTHY), (15.1, UNHEALTHY), (None, UNHEALTHY), (900.0, UNHEALTHY)]
)
def test_a_supervisor_lives_that_has_looked_lately(silent: float | None, status: Health) -> None:
    check = judge_supervisor(silent, 15.0)
    assert (check.status, check.seconds, check.limits) == (status, silent, {"unhealthy": 15.0})


@pytest.mark.parametrize(
    ("phase", "status"), [("starting", HEALTHY), ("running", HEALTHY), ("stopping", UNHEALTHY), (None, UNHEALTHY)]
)
def test_a_worker_that_stops_takes_no_work(phase: str | None, status: Health) -> None:
    assert judge_phase(phase).status is status


# ── children ──────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("children", "status", "says"),
    [
        ([LIVE], HEALTHY, "1 of 1 live"),
        ([LIVE, LIVE], HEALTHY, "2 of 2 live"),
        ([LIVE, GONE], DEGRADED, "1 of 2 live"),
        ([LIVE, BOOTING], DEGRADED, "1 of 2 live, 1 booting"),
        ([LIVE, SILENT], DEGRADED, "1 of 2 live, 1 not heard of for 31.0 s"),
        ([GONE], UNHEALTHY, "0 of 1 live"),
        ([BOOTING], UNHEALTHY, "0 of 1 live, 1 booting"),
        ([SILENT, BOOTING], UNHEALTHY, "0 of 2 live, 1 not heard of for 31.0 s, 1 booting"),
        ([ChildFacts(name="q#0", ready=True, silent=30.0)], HEALTHY, "1 of 1 live"),
    ],
)
def test_a_queue_needs_a_live_child_and_wants_all(children: list[ChildFacts], status: Health, says: str) -> None:
    check = judge_workers([queue(*children)], 30.0)
    [part] = check.parts
    assert (check.status, part.status, part.says) == (status, status, says)


def test_a_queue_without_a_live_child_is_named_whatever_the_others_do() -> None:
    check = judge_workers([queue(LIVE, name="a"), queue(GONE, name="b"), queue(LIVE, GONE, name="c")], 30.0)
    assert (check.status, check.says) == (UNHEALTHY, "without a live child: b")
    check = judge_workers([queue(LIVE, name="a"), queue(LIVE, GONE, name="c")], 30.0)
    assert (check.status, check.says) == (DEGRADED, "with fewer live children than wanted: c")
    assert judge_workers([], 30.0).status is UNHEALTHY


@pytest.mark.parametrize(
    ("children", "status"),
    [
        ([LIVE], HEALTHY),
        ([CUT_OFF], UNHEALTHY),
        ([CUT_OFF, LIVE], HEALTHY),
        ([CUT_OFF, SILENT], UNHEALTHY),
        ([WAITING], UNHEALTHY),
        ([BOOTING], HEALTHY),
        ([LIVE, WAITING], HEALTHY),
        ([GONE], HEALTHY),
    ],
)
def test_one_live_child_that_reaches_the_database_is_enough(children: list[ChildFacts], status: Health) -> None:
    """Without a live one those that boot tell; that there is no live one is another check's business."""
    assert judge_reach([queue(*children), queue(LIVE, name="other")], 30.0).status is status


def test_a_loop_that_stands_still_is_told_of_by_its_name() -> None:
    slow = ChildFacts(name="q#1", ready=True, silent=0.1, lag=6.0)
    still = ChildFacts(name="q#2", ready=True, silent=12.0)
    check = judge_loops([queue(LIVE, slow, still, GONE, ChildFacts(name="q#4", silent=90.0))], 5.0)
    assert (check.status, check.says, check.seconds) == (DEGRADED, "stalled: q#1, q#2", 12.0)
    assert [(part.name, part.seconds) for part in check.parts] == [("q#1", 6.0), ("q#2", 12.0)]
    fine = judge_loops([queue(LIVE)], 5.0)
    assert (fine.status, fine.seconds, fine.parts) == (HEALTHY, 0.2, [])
    assert judge_loops([], 5.0).seconds is None


@pytest.mark.parametrize(("child", "status"), [(GONE, DEGRADED), (BOOTING, DEGRADED), (LIVE, HEALTHY)])
def test_without_maintenance_work_goes_on(child: ChildFacts, status: Health) -> None:
    assert judge_maintenance(child).status is status


# ── the database ──────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("facts", "status", "says"),
    [
        (DatabaseFacts(), UNHEALTHY, "has not answered yet"),
        (DatabaseFacts(answered=True, took=0.003, age=0.5), HEALTHY, "within 3.0 ms"),
        (DatabaseFacts(answered=True, took=0.25, age=0.5), HEALTHY, "within 250 ms"),
        (DatabaseFacts(answered=True, took=2.5, age=0.1), UNHEALTHY, "within 2.5 s"),
        (DatabaseFacts(answered=True, took=0.1, age=9.0, waiting=1.9), HEALTHY, "within 100 ms"),
        (DatabaseFacts(answered=True, took=0.1, age=9.0, waiting=2.0), UNHEALTHY, "not answered for 2.0 s"),
        (DatabaseFacts(waiting=300.0), UNHEALTHY, "not answered for 5 min"),
        (DatabaseFacts(failed=True, took=0.1, age=0.5), UNHEALTHY, "does not answer"),
    ],
)
def test_a_database_that_answers_within_its_time_is_healthy(facts: DatabaseFacts, status: Health, says: str) -> None:
    check = judge_database(facts, 2.0)
    assert check.status is status
    assert says in check.says


@pytest.mark.parametrize(
    ("facts", "status", "says"),
    [
        (SchemaFacts(), HEALTHY, "not been looked at"),
        (SchemaFacts(known=True, live=4, needed=4), HEALTHY, "version 4"),
        (SchemaFacts(known=True, fits=False, live=5, needed=4), UNHEALTHY, "(version 5, this program needs 4)"),
        (SchemaFacts(known=True, fits=False, needed=4), UNHEALTHY, "(version none, this program needs 4)"),
        (SchemaFacts(known=True, fits=False), UNHEALTHY, "`chokaq schema check`"),
    ],
)
def test_a_schema_that_does_not_fit_is_unhealthy(facts: SchemaFacts, status: Health, says: str) -> None:
    check = judge_schema(facts)
    assert check.status is status
    assert says in check.says


# ── lag ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("lag", "status"), [(None, HEALTHY), (5.0, HEALTHY), (5.1, DEGRADED), (10.0, DEGRADED), (10.1, UNHEALTHY)]
)
def test_lag_is_judged_by_two_lines(lag: float | None, status: Health) -> None:
    check = judge_lag([LagFacts(name="q", oldest_due=lag)], 5.0, 10.0)
    assert (check.status, check.seconds) == (status, lag or 0.0)


def test_a_paused_or_inactive_queue_is_not_saturated() -> None:
    """The defect of the system this follows: what an operator holds back was reported as saturation."""
    held = [LagFacts(name="p", held="paused", oldest_due=9_000.0), LagFacts(name="i", held="inactive", oldest_due=60.0)]
    check = judge_lag([*held, LagFacts(name="q", oldest_due=1.0)], 5.0, 10.0)
    assert (check.status, check.seconds) == (HEALTHY, 1.0)
    assert check.parts[0].says == "paused: the oldest due job has waited for 150 min"
    assert {part.status for part in check.parts} == {HEALTHY}


def test_an_exempt_queue_and_lines_that_are_not_drawn_are_told_and_not_judged() -> None:
    late = [LagFacts(name="reports", oldest_due=3_600.0)]
    exempt = judge_lag(late, 5.0, 10.0, ["reports"])
    assert (exempt.status, exempt.parts[0].seconds) == (HEALTHY, 3_600.0)
    assert judge_lag(late, None, None).status is HEALTHY
    assert judge_lag(late, 5.0, None).status is DEGRADED
    assert judge_lag(late, None, 10.0).status is UNHEALTHY


def test_the_gravest_queue_speaks_for_all() -> None:
    queues = [
        LagFacts(name="a", oldest_due=1.0),
        LagFacts(name="b", oldest_due=7.0),
        LagFacts(name="c", oldest_due=70.0),
    ]
    check = judge_lag(queues, 5.0, 10.0)
    assert check.status is UNHEALTHY
    assert check.says.startswith("b: the oldest due job has waited for 7.0 s; c: ")


def test_lag_that_is_not_known_degrades() -> None:
    assert judge_lag(None, 5.0, 10.0).status is DEGRADED


# ── several databases ─────────────────────────────────────────────────────────────────────────────────────────────────
def test_one_database_speaks_for_itself() -> None:
    check = judge_database(DatabaseFacts(answered=True, took=0.1), 2.0)
    assert together({"main": check}) == check


def test_of_several_databases_the_ill_ones_are_named() -> None:
    well = judge_database(DatabaseFacts(answered=True, took=0.1), 2.0)
    away = judge_database(DatabaseFacts(waiting=7.0), 2.0)
    check = together({"main": well, "archive": away})
    assert (check.name, check.status, check.seconds) == ("database", UNHEALTHY, 7.0)
    assert check.says == "archive: the database has not answered for 7.0 s"
    assert [(part.name, part.status) for part in check.parts] == [("main", HEALTHY), ("archive", UNHEALTHY)]
    both = together({"main": well, "archive": well})
    assert (both.status, both.says) == (HEALTHY, "well in each of the databases main, archive")


def test_of_several_databases_each_queue_is_told_and_the_unknown_ones_are() -> None:
    known = judge_lag([LagFacts(name="a", oldest_due=7.0), LagFacts(name="b")], 5.0, 10.0)
    check = together({"main": known, "archive": judge_lag(None, 5.0, 10.0)})
    assert check.status is DEGRADED
    assert [part.name for part in check.parts] == ["a", "b", "archive"]
    assert check.says.startswith("main: a: the oldest due job has waited for 7.0 s; archive: not known")


# ── all together ──────────────────────────────────────────────────────────────────────────────────────────────────────
@given(st.lists(st.sampled_from(Health)))
def test_the_worst_of_all_is_the_verdict(statuses: list[Health]) -> None:
    found = worst(Check(name="c", status=status, says="") for status in statuses)
    assert (found is UNHEALTHY) == (UNHEALTHY in statuses)
    assert (found is HEALTHY) == all(status is HEALTHY for status in statuses)


children = st.builds(
    ChildFacts,
    name=st.just("q#0"),
    here=st.booleans(),
    ready=st.booleans(),
    silent=st.none() | st.floats(0, 1e6),
    lag=st.floats(0, 1e6),
    reaches_store=st.booleans(),
)


@given(st.lists(children, max_size=5), st.floats(0.001, 1e6))
def test_a_queue_is_ready_exactly_when_a_live_child_of_it_reaches_the_database(
    found: list[ChildFacts], limit: float
) -> None:
    facts = [queue(*found)]
    live = [
        child for child in found if child.here and child.ready and child.silent is not None and child.silent <= limit
    ]
    ready = worst([judge_workers(facts, limit), judge_reach(facts, limit)]) is not UNHEALTHY
    assert ready == any(child.reaches_store for child in live)
    # A verdict is always one that can be told.
    assert all(
        check.says for check in (judge_workers(facts, limit), judge_reach(facts, limit), judge_loops(facts, 5.0))
    )
