"""The supervisor's pure rules: verdicts, blame, causes, delays, scaling, reload."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.config.settings import Policy, QueueSettings, Settings, SupervisorSettings
from chokaq.lifecycle.states import DeathCause
from chokaq.store.records import Held
from chokaq.supervisor.board import Running, SlotState, Snapshot
from chokaq.supervisor.children import Assignment, Child, Post
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.reload import plan_reload
from chokaq.supervisor.respawn import Backoff
from chokaq.supervisor.scaling import queue_to_grow, queue_to_shrink
from chokaq.supervisor.verdicts import MAX_CULPRITS, Verdict, blame, cause_of, judge, notice_of

QUEUE = QueueSettings(name="q", stall_limit=60.0, max_jobs=100, max_memory=1_000_000)
LATE, FINE = Running(Held("L" * 26, 1), 90.0), Running(Held("F" * 26, 2), 500.0)


def child(**fields: object) -> Child:
    """A child ready since second 0."""
    return Child(**{"pid": 1, "slot": 0, "forked_at": 0.0, "name": "q#0", "ready_at": 0.0, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("board", "verdict"),
    [
        (Snapshot(pulse_at=99.0), Verdict.FINE),
        (Snapshot(pulse_at=41.0), Verdict.FINE),
        (Snapshot(pulse_at=39.0), Verdict.STALLED),
        (Snapshot(pulse_at=None), Verdict.STALLED),
        (Snapshot(pulse_at=99.0, handlers=(LATE, FINE)), Verdict.OVERDUE),
        (Snapshot(pulse_at=39.0, handlers=(LATE,)), Verdict.STALLED),
        (Snapshot(pulse_at=99.0, completed=100), Verdict.SPENT),
        (Snapshot(pulse_at=99.0, memory_kb=977), Verdict.SPENT),
        (Snapshot(pulse_at=99.0, completed=99, memory_kb=976), Verdict.FINE),
        (Snapshot(pulse_at=99.0, asks_replacement=True), Verdict.SPENT),
        (Snapshot(pulse_at=99.0, asks_replacement=True, handlers=(LATE,)), Verdict.OVERDUE),
    ],
)
def test_the_verdict_on_a_child_at_second_100(board: Snapshot, verdict: Verdict) -> None:
    assert judge(child(), board, QUEUE, 100.0) is verdict


def test_a_child_that_is_not_ready_has_no_stalled_loop() -> None:
    assert judge(child(ready_at=None), Snapshot(), QUEUE, 1_000.0) is Verdict.FINE


def test_blame_falls_on_what_is_past_its_deadline_and_a_stall_without_any_is_a_crash() -> None:
    assert blame(Snapshot(handlers=(LATE, FINE)), 100.0, stalled=False) == (DeathCause.LIMIT, [LATE.job])
    assert blame(Snapshot(handlers=(LATE, FINE)), 100.0, stalled=True) == (DeathCause.LIMIT, [LATE.job])
    assert blame(Snapshot(handlers=(FINE,)), 100.0, stalled=True) == (DeathCause.CRASH, [])
    assert blame(Snapshot(handlers=(FINE,)), 100.0, stalled=False) == (DeathCause.SHUTDOWN, [])


def test_no_notice_names_more_culprits_than_a_packet_holds() -> None:
    many = tuple(Running(Held("L" * 26, lease), 0.0) for lease in range(MAX_CULPRITS + 1))
    assert len(blame(Snapshot(handlers=many), 1.0, stalled=False)[1]) == MAX_CULPRITS


@pytest.mark.parametrize(
    ("killed_for", "drain", "code", "signal", "state", "cause"),
    [
        (None, None, None, 9, SlotState.READY, DeathCause.CRASH),
        (None, None, None, 11, SlotState.DRAINING, DeathCause.CRASH),
        (None, "shutdown", 0, None, SlotState.DRAINING, DeathCause.SHUTDOWN),
        (None, None, 0, None, SlotState.READY, DeathCause.CRASH),
        (None, None, 78, None, SlotState.BOOTING, DeathCause.SHUTDOWN),
        (None, None, 75, None, SlotState.DRAINING, DeathCause.SHUTDOWN),
        (None, None, 1, None, SlotState.DRAINING, DeathCause.CRASH),
        (DeathCause.LIMIT, "hard_limit", None, 9, SlotState.DRAINING, DeathCause.LIMIT),
        (DeathCause.SHUTDOWN, "shutdown", None, 9, SlotState.DRAINING, DeathCause.SHUTDOWN),
        (DeathCause.LIMIT, "hard_limit", None, 11, SlotState.DRAINING, DeathCause.CRASH),
        (DeathCause.LIMIT, "hard_limit", 0, None, SlotState.DRAINING, DeathCause.SHUTDOWN),
        (None, "shutdown", None, 15, SlotState.BOOTING, DeathCause.SHUTDOWN),
        (None, None, None, 15, SlotState.READY, DeathCause.CRASH),
    ],
)
def test_the_cause_of_a_death(
    killed_for: DeathCause | None,
    drain: str | None,
    code: int | None,
    signal: int | None,
    state: SlotState,
    cause: DeathCause,
) -> None:
    end = Exit(1, code, signal, 5)
    assert cause_of(child(killed_for=killed_for, drain_reason=drain), end, Snapshot(state=state)) is cause


def test_a_child_without_a_worker_id_needs_no_notice_and_memory_falls_back_to_the_kernels_word() -> None:
    end = Exit(1, None, 9, 5_000)
    assert notice_of(child(), "q", end, Snapshot(), 10.0) is None
    notice = notice_of(child(), "q", end, Snapshot(state=SlotState.READY, worker_id="W" * 26, pulse_at=7.5), 10.0)
    assert notice is not None
    assert (notice.memory_kb, notice.last_pulse_ms, notice.signal, notice.cause) == (5_000, 2_500, 9, "crash")


def test_the_delay_doubles_to_its_ceiling_and_starts_anew_after_a_healthy_minute() -> None:
    backoff = Backoff(0.5, 30.0, jitter=lambda: 0.0)
    assert [backoff.died(1.0) for _ in range(8)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert backoff.died(60.0) == 0.5


@given(st.integers(0, 2_000), st.floats(0, 1, exclude_max=True))
def test_no_delay_exceeds_the_ceiling_however_often_a_child_dies(deaths: int, chance: float) -> None:
    backoff = Backoff(0.5, 30.0, jitter=lambda: chance)
    delay = 0.0
    for _ in range(deaths):
        delay = backoff.died(0.0)
    assert 0.0 <= delay <= 30.0


def test_growth_goes_to_the_busiest_queue_and_shrinking_to_the_idlest_that_can() -> None:
    loads = {"a": [10, 0], "b": [6], "c": [1, 1, 1]}
    assert queue_to_grow(loads) == "b"
    assert queue_to_shrink(loads) == "c"
    assert queue_to_shrink({"a": [0], "b": [5]}) is None
    assert queue_to_grow({"b": [0], "a": [0]}) == "a"
    assert queue_to_grow({}) is None


def posts(settings: Settings) -> dict[str, list[Post]]:
    """The posts that these settings give at start."""
    return {
        name: [Post(index, Assignment(queue, settings), Backoff(1, 2)) for index in range(queue.processes)]
        for name, queue in settings.queues.items()
    }


def settings(**queues: QueueSettings) -> Settings:
    """Settings with these queues."""
    return Settings(app="a:b", queues=queues)


A, B = QueueSettings(name="a"), QueueSettings(name="b", processes=2)


def test_a_reload_without_changes_plans_nothing() -> None:
    plan = plan_reload(posts(settings(a=A, b=B)), settings(a=A, b=B), settings(a=A, b=B))
    assert (plan.close, plan.open, plan.replace) == ([], [], [])


def test_a_reload_replaces_only_the_queue_that_changed() -> None:
    changed = QueueSettings(name="a", policy=Policy(max_attempts=9))
    plan = plan_reload(posts(settings(a=A, b=B)), settings(a=A, b=B), settings(a=changed, b=B))
    assert [post.queue for post, _ in plan.replace] == ["a"]
    assert plan.replace[0][1].queue is changed


def test_what_all_children_share_concerns_all_of_them_and_what_only_the_parent_reads_none() -> None:
    old = settings(a=A, b=B)
    shared = Settings(app="a:b", queues=old.queues, types={"t": {"max_attempts": 1}})
    assert len(plan_reload(posts(old), old, shared).replace) == 3
    parents = Settings(app="a:b", queues=old.queues, supervisor=SupervisorSettings(respawn_max=99.0))
    assert plan_reload(posts(old), old, parents).replace == []


def test_the_number_of_processes_follows_the_file_only_when_the_file_changes_it() -> None:
    old = settings(b=B)
    grown = posts(old)
    grown["b"].append(Post(2, Assignment(B, old), Backoff(1, 2)))
    assert plan_reload(grown, old, old).close == []
    fewer = QueueSettings(name="b", processes=1)
    plan = plan_reload(grown, old, settings(b=fewer))
    assert [post.index for post in plan.close] == [1, 2]
    assert plan.replace == []
    more = QueueSettings(name="b", processes=5)
    assert len(plan_reload(grown, old, settings(b=more)).open) == 2
