"""GetScaleRecommendation: how many replicas a queue wants, from lag and running work against capacity."""

from typing import Any

import msgspec
import pytest

from chokaq.lifecycle.circuit import CircuitState
from chokaq.lifecycle.scale import ScaleBounds, ScaleFigures, recommend
from chokaq.store.circuits import CircuitChange
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session, Store
from chokaq.store.records import CrashPolicies, Figures, Held, QueueChange, Registration
from chokaq.store.scale import ScaleView
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, TYPE, death, new_job, new_jobs, worker_info
from tests.support.lab import Lab

MINUTE = 60_000
OPEN, HALF_OPEN = CircuitState.OPEN, CircuitState.HALF_OPEN


def ask(session: Session, queue: str = QUEUE, **bounds: Any) -> ScaleView:
    """The recommendation, which must be what the rule makes of the figures it names."""
    wanted = ScaleBounds(**bounds)
    view = session.get_scale_recommendation(queue, wanted)
    given = {name: getattr(view, name) for name in ScaleFigures.__struct_fields__}
    advice = recommend(msgspec.convert(given, ScaleFigures), wanted)
    assert (advice.replicas, advice.reason, advice.low, advice.high) == (
        view.replicas,
        view.reason,
        view.low,
        view.high,
    )
    return view


def workers(session: Session, *hosts: str, max_workers: int = 10, queue: str = QUEUE) -> list[Registration]:
    """One worker per host named."""
    return [session.register_worker(worker_info(queue, host=host, max_workers=max_workers)) for host in hosts]


def settle_in(lab: Lab) -> None:
    """Every worker has been there for two minutes."""
    lab.age_all("Workers", "StartedAtUtc", 2 * MINUTE)


def run(session: Session, count: int) -> tuple[Holder, list[Held]]:
    """A worker (of host-1, with one handler) that runs `count` jobs."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(count))
    return holder, holder.take_all(count)


def wait_too_long(session: Session, lab: Lab, count: int) -> None:
    """`count` jobs that have been due for ten seconds."""
    jobs = new_jobs(count)
    session.enqueue_jobs(jobs)
    ids = ", ".join(f"'{job.id}'" for job in jobs)
    assert lab.age_all("JobsHot", "DueAtUtc", 10_000, f"Id IN ({ids})") == count


# ── the rule ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_queue_without_work_and_without_workers_wants_none(session: Session) -> None:
    view = ask(session)
    assert (view.replicas, view.reason, view.live, view.replica_handlers) == (0, "steady", 0, 50)
    assert (view.due, view.oldest_due_ms, view.mean_run_ms, view.fleet_cap) == (0, None, None, None)
    assert (ask(session, min_replicas=2).replicas, ask(session, min_replicas=2).reason) == (2, "minimum")


@pytest.mark.parametrize("delay", [0, 60_000])
def test_a_due_job_wakes_a_queue_that_nobody_serves(session: Session, lab: Lab, delay: int) -> None:
    """Also one whose time has come since the last fetch, which nobody has promoted."""
    job = new_job(delay_ms=delay)
    session.enqueue_jobs([job])
    if delay:
        assert ask(session).replicas == 0
        lab.age(job.id, "DueAtUtc", delay)
    view = ask(session)
    assert (view.replicas, view.reason, view.due) == (1, "lag", 1)


def test_what_the_dead_left_behind_wakes_it_too(session: Session, lab: Lab) -> None:
    """Without a replica there is no maintenance, and nobody would release it."""
    holder, _ = run(session, 2)
    lab.age_worker(holder.id, 20 * MINUTE)
    session.set_queue(QUEUE, QueueChange(fleet_max_workers=2), "ann")
    view = ask(session, replica_handlers=50)
    assert (view.replicas, view.live, view.running) == (1, 0, 2)


def test_a_replica_is_a_host_and_a_process_is_a_child(session: Session) -> None:
    workers(session, "pod-a", "pod-a", "pod-b", "pod-b")
    workers(session, "pod-c", queue="other")
    session.register_worker(worker_info("", host="pod-d"))

    by_host, by_child = ask(session), ask(session, unit="process")

    assert (by_host.live, by_host.replica_handlers) == (2, 20)
    assert (by_child.live, by_child.replica_handlers) == (4, 10)


def test_jobs_that_wait_too_long_call_for_as_many_as_will_work_them_off(session: Session, lab: Lab) -> None:
    holder, _ = run(session, 2)
    lab.execute(f"UPDATE {{Workers}} SET MaxWorkers = 2 WHERE WorkerId = '{holder.id}'")
    wait_too_long(session, lab, 10)

    view = ask(session)

    # Nobody knows how long they run, so each may need a handler: 12 handlers, 80 % busy, two of them per replica.
    assert (view.replicas, view.reason, view.running, view.due) == (8, "lag", 2, 10)
    assert view.oldest_due_ms is not None
    assert view.oldest_due_ms >= 10_000
    assert (ask(session, max_replicas=5).replicas, ask(session, max_replicas=5).reason) == (5, "maximum")
    assert ask(session, replica_handlers=15).replicas == 1
    assert ask(session, busy_percent=100).replicas == 6
    assert ask(session, target_lag_ms=3_600_000).replicas == 1, "they may wait that long"
    assert ask(session, "other").due == 0


def test_short_jobs_need_fewer_handlers_than_there_are_jobs(session: Session, lab: Lab) -> None:
    holder, held = run(session, 4)
    for job in held:
        lab.age(job.id, "StartedAtUtc", 3_000)
    holder.succeed(held)
    wait_too_long(session, lab, 100)

    view = ask(session, catch_up_ms=30_000, replica_handlers=2)

    assert view.mean_run_ms is not None
    assert 3_000 <= view.mean_run_ms < 3_000 + 500
    assert view.busy_handlers == 1
    # 100 jobs of 3 s in 30 s: 10 handlers and a little, beside the one that was busy.
    assert view.low in {7, 8}
    assert (view.replicas, view.reason) == (view.low, "lag")
    assert ask(session, replica_handlers=2, catch_up_ms=1_000).replicas == 64, "never more handlers than jobs"


def test_busy_handlers_alone_call_for_nobody_and_idle_ones_send_them_away(session: Session, lab: Lab) -> None:
    holder, held = run(session, 10)
    workers(session, "host-1", "pod-b", "pod-c", "pod-d", max_workers=5)
    view = ask(session, replica_handlers=5)
    assert (view.live, view.replicas, view.reason) == (4, 4, "steady"), "10 of 20 are busy: within the room"
    assert ask(session, replica_handlers=2).replicas == 4, "10 of 8 are busy, but no job waits too long"

    holder.succeed(held[:7])
    view = ask(session, replica_handlers=5)
    assert (view.replicas, view.reason) == (2, "idle"), "3 of 20 are busy; half of 10 is more than that"


def test_nobody_is_sent_away_soon_after_a_job_had_to_wait_too_long(session: Session, lab: Lab) -> None:
    workers(session, "pod-a", "pod-b", "pod-c")
    holder = Holder(session)
    wait_too_long(session, lab, 1)
    [job] = holder.take(1)
    lab.age(job.id, "StartedAtUtc", 1_000)
    holder.succeed([job])

    view = ask(session)
    assert (view.late, view.replicas, view.reason) == (1, 4, "steady")
    patient = ask(session, target_lag_ms=20_000)
    assert (patient.late, patient.replicas, patient.reason) == (0, 1, "idle")

    lab.age_all("MetricBuckets", "StartUtc", 6 * MINUTE)
    view = ask(session)
    assert (view.late, view.replicas, view.reason) == (0, 0, "idle")


def test_buffered_jobs_wait_as_well(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    holder.claim(3)
    wait_too_long(session, lab, 1)
    view = ask(session, replica_handlers=1)
    assert (view.buffered, view.due, view.low) == (3, 1, 5)


def test_the_answer_is_a_fixed_point(session: Session, lab: Lab) -> None:
    """With as many replicas as were wanted, no other number is wanted."""
    _, held = run(session, 12)
    wait_too_long(session, lab, 6)
    wanted = ask(session, replica_handlers=4).replicas
    assert wanted == 6
    workers(session, *(f"pod-{n}" for n in range(1, wanted)))
    again = ask(session, replica_handlers=4)
    assert (again.live, again.replicas, again.reason) == (wanted, wanted, "steady")
    assert len(held) == 12


# ── holding ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("change", "reason"), [(QueueChange(paused=True), "paused"), (QueueChange(active=False), "inactive")]
)
def test_a_queue_that_is_not_served_keeps_its_number(
    session: Session, lab: Lab, change: QueueChange, reason: str
) -> None:
    workers(session, "pod-a", "pod-b")
    settle_in(lab)
    session.set_queue(QUEUE, change, "ann")
    wait_too_long(session, lab, 500)
    view = ask(session, replica_handlers=1)
    assert (view.replicas, view.reason) == (2, reason)
    assert ask(session, min_replicas=3).replicas == 3, "the bounds hold all the same"
    assert ask(session, max_replicas=1).replicas == 1


@pytest.mark.parametrize(
    ("state", "probe_ms", "changed_ms", "holds"),
    [
        (OPEN, 20_000, 5_000, True),
        (OPEN, None, 86_400_000, True),
        (HALF_OPEN, None, 5_000, True),
        (CircuitState.CLOSED, None, 5_000, False),
    ],
)
def test_an_open_circuit_keeps_the_number(
    session: Session, lab: Lab, state: CircuitState, probe_ms: int | None, changed_ms: int, holds: bool
) -> None:
    first, *_ = workers(session, "pod-a", "pod-b")
    settle_in(lab)
    wait_too_long(session, lab, 500)
    change = CircuitChange(
        type_key=TYPE, state=state, failures=5, generation=1, next_probe_ms=probe_ms, changed_ms=changed_ms
    )
    session.report_circuits(first, [change])

    view = ask(session, replica_handlers=1)

    assert view.open_circuits == int(holds)
    assert (view.replicas, view.reason) == ((2, "circuit") if holds else (100, "maximum"))
    assert ask(session, "other").open_circuits == 0


def test_a_circuit_that_nobody_waits_for_holds_nothing(session: Session, lab: Lab) -> None:
    """Nothing of its type came when it was to be tried; or its worker is gone."""
    first, second, silent = workers(session, "pod-a", "pod-b", "pod-c")
    shut = CircuitChange(type_key=TYPE, state=OPEN, failures=5, generation=1, next_probe_ms=0)
    session.report_circuits(first, [shut])
    session.report_circuits(second, [msgspec.structs.replace(shut, state=HALF_OPEN, next_probe_ms=None)])
    session.report_circuits(silent, [msgspec.structs.replace(shut, type_key="other.v1")])
    assert ask(session).open_circuits == 2
    lab.age_worker(silent.worker_id, 2 * MINUTE)
    assert ask(session).open_circuits == 1
    lab.age_all("Circuits", "NextProbeUtc", 3 * MINUTE, "NextProbeUtc IS NOT NULL")
    assert ask(session).open_circuits == 1, "the other one is being tried"
    lab.age_all("Circuits", "ChangedAtUtc", 11 * MINUTE)
    assert ask(session).open_circuits == 0


def test_a_reached_fleet_cap_keeps_the_number_and_limits_what_is_called_for(session: Session, lab: Lab) -> None:
    holder, held = run(session, 4)
    settle_in(lab)
    wait_too_long(session, lab, 50)
    assert ask(session, replica_handlers=1).replicas > 4

    view = ask(session, replica_handlers=1, fleet_cap=4)
    assert (view.replicas, view.reason, view.fleet_cap) == (1, "fleet_cap", 4)

    holder.succeed(held[:1])
    view = ask(session, replica_handlers=1, fleet_cap=4)
    assert (view.replicas, view.reason) == (4, "lag"), "more than four could not work at once"

    session.set_queue(QUEUE, QueueChange(fleet_max_workers=3), "ann")
    view = ask(session, replica_handlers=1, fleet_cap=100)
    assert (view.replicas, view.reason, view.fleet_cap) == (1, "fleet_cap", 3), "the override wins"


# ── who is there ──────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_deploys_newcomers_and_leavers_do_not_become_the_number(session: Session, lab: Lab) -> None:
    old = workers(session, "old-1", "old-2", "old-3")
    settle_in(lab)
    workers(session, "new-1", "new-2")
    session.keep_alive(old[0], [], Figures(draining=True))
    session.set_queue(QUEUE, QueueChange(paused=True), "ann")

    view = ask(session)
    assert (view.live, view.settled, view.replicas) == (4, 2, 2)

    for worker in old:
        session.keep_alive(worker, [], Figures(draining=True))
    view = ask(session)
    assert (view.live, view.settled, view.replicas) == (2, 1, 1), "somebody is there"
    settle_in(lab)
    assert ask(session).replicas == 2


def test_since_when_a_worker_drains_is_told_once(session: Session, lab: Lab) -> None:
    [worker] = workers(session, "pod-a")
    session.keep_alive(worker, [], Figures())
    assert lab.rows("Workers")[0]["DrainingAtUtc"] is None
    session.keep_alive(worker, [], Figures(draining=True))
    lab.age_all("Workers", "DrainingAtUtc", 5_000)
    since = lab.rows("Workers")[0]["DrainingAtUtc"]
    session.keep_alive(worker, [], Figures(draining=True))
    assert lab.rows("Workers")[0]["DrainingAtUtc"] == since


def test_only_those_that_are_heard_of_and_stay_count(session: Session, lab: Lab) -> None:
    by, alive, silent, ended, asked = workers(session, "pod-0", "pod-a", "pod-b", "pod-c", "pod-d")
    assert ask(session).live == 5
    lab.age_worker(silent.worker_id, MINUTE + 5_000)
    session.release_worker(by, death(ended.worker_id, "crash"), CrashPolicies())
    session.drain_worker(asked.worker_id, "ann")
    assert ask(session).live == 2
    assert alive.queue == QUEUE


def test_after_an_outage_the_newest_heartbeat_is_the_measure(session: Session, lab: Lab) -> None:
    """Nobody could renew anything: that is no reason to send everybody away."""
    workers(session, "pod-a", "pod-b")
    lab.age_all("Workers", "HeartbeatUtc", 5 * MINUTE)
    assert ask(session).live == 2
    workers(session, "pod-c")
    assert ask(session).live == 1, "now one can be compared with another"
    lab.age_all("Workers", "HeartbeatUtc", 11 * MINUTE)
    assert ask(session).live == 0


def test_what_a_replica_runs_is_known_from_those_that_were_there_and_from_the_override(session: Session) -> None:
    by, gone = workers(session, "pod-a", "pod-b", max_workers=7)
    for worker in (gone, by):
        session.release_worker(by, death(worker.worker_id, "shutdown"), CrashPolicies())
    assert (ask(session).live, ask(session).replica_handlers) == (0, 7)
    session.set_queue(QUEUE, QueueChange(max_workers=3), "ann")
    assert ask(session).replica_handlers == 3
    workers(session, "pod-c", "pod-c")
    assert ask(session).replica_handlers == 6


# ── what it does not do ───────────────────────────────────────────────────────────────────────────────────────────────
def test_it_changes_nothing_and_waits_for_no_callers_transaction(store: Store, session: Session, lab: Lab) -> None:
    run(session, 2)
    session.enqueue_jobs(new_jobs(2))
    before = lab.snapshot("JobsHot", "Queues", "Workers", "MetricBuckets", "AuditLog", "Circuits")
    caller = lab.caller()
    try:
        store.enqueue_in(caller.cursor(), [new_job()])
        view = ask(session)
        caller.rollback()
    finally:
        caller.close()
    assert (view.due, view.running) == (2, 2)
    assert lab.snapshot("JobsHot", "Queues", "Workers", "MetricBuckets", "AuditLog", "Circuits") == before


@pytest.mark.parametrize(
    "bounds",
    [
        {"min_replicas": -1}, {"min_replicas": 3, "max_replicas": 2}, {"max_replicas": 10_001}, {"target_lag_ms": -1},
        {"target_lag_ms": 86_400_001}, {"catch_up_ms": 999}, {"replica_handlers": -1}, {"idle_percent": 80}, {"idle_percent": 0},
        {"busy_percent": 101}, {"unit": "pod"}, {"fleet_cap": -1},
    ],
)  # fmt: skip
def test_bounds_that_make_no_sense_are_refused(session: Session, bounds: dict[str, Any]) -> None:
    with pytest.raises(StoreRefused, match="a scale recommendation wants"):
        session.get_scale_recommendation(QUEUE, ScaleBounds(**bounds))


@pytest.mark.parametrize("queue", ["", "ü", "x" * 256])
def test_what_is_no_queue_name_is_refused(session: Session, queue: str) -> None:
    with pytest.raises(StoreRefused, match="queue"):
        session.get_scale_recommendation(queue)
