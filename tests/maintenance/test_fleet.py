"""What only the leader shows, and what it counts for the whole fleet."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from chokaq.config.settings import MaintenanceSettings, QueueSettings, Settings
from chokaq.maintenance.chores import Chore
from chokaq.maintenance.fleet import Fleet, LeaderWatch, Operators, capacity
from chokaq.maintenance.link import StoreLink
from chokaq.maintenance.loop import MaintenanceLoop
from chokaq.maintenance.tally import MaintenanceTally
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Figures as WorkerFigures
from chokaq.store.records import Leadership, LiveQueue, QueueChange, QueueView, WorkerInfo, WorkerView
from tests.support.figures import Figures
from tests.support.holder import Holder
from tests.support.jobs import new_job
from tests.support.lab import Lab

from .fakes import ME, Boss, FakeSlot, FakeStore

QUEUE = "emails"
SHOWN = {
    "queue_jobs", "queue_lag_seconds", "queue_oldest_due_seconds", "queue_oldest_running_seconds", "queue_paused",
    "workers_active", "queue_capacity",
}  # fmt: skip
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def figures(tmp_path: Path) -> Iterator[Figures]:
    made = Figures(tmp_path)
    yield made
    sql.sink = None
    made.close()


def carry_out(chore: Chore) -> int:
    """All steps of a chore; how many."""
    return len(list(chore))


def shown(figures: Figures) -> set[str]:
    """Names of the fleet's gauges that show something."""
    return {key[0] for key in figures.all()} & SHOWN


# ── gauges ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_depths_and_ages_of_every_queue_are_shown(session: Session, figures: Figures, lab: Lab) -> None:
    jobs = [new_job(queue=QUEUE) for _ in range(6)]
    session.enqueue_jobs([*jobs[:5], msgspec.structs.replace(jobs[5], delay_ms=3_600_000)])
    holder = Holder(session, QUEUE)
    (running,) = holder.take(1)
    holder.claim(1)
    lab.age(running.id, "StartedAtUtc", 120_000)
    for job in jobs[:5]:
        lab.age(job.id, "DueAtUtc", 60_000)
    fleet = Fleet(figures.recorder)
    fleet.leads(True)
    carry_out(fleet.look(session))
    assert figures.labels("queue_jobs") == {
        (QUEUE, "pending"): 3, (QUEUE, "scheduled"): 1, (QUEUE, "fetched"): 1, (QUEUE, "processing"): 1,
    }  # fmt: skip
    assert 60 <= figures.count("queue_lag_seconds", QUEUE) < 90
    assert 60 <= figures.count("queue_oldest_due_seconds", QUEUE) < 90
    assert 120 <= figures.count("queue_oldest_running_seconds", QUEUE) < 150
    assert figures.labels("workers_active") == {(QUEUE,): 1}
    assert figures.labels("queue_paused") == {(QUEUE,): 0}
    assert figures.labels("queue_capacity") == {(QUEUE,): session.list_workers()[0].max_workers}


def test_a_paused_queue_has_an_age_and_no_lag(session: Session, figures: Figures, lab: Lab) -> None:
    job = new_job(queue=QUEUE)
    session.enqueue_jobs([job])
    lab.age(job.id, "DueAtUtc", 60_000)
    session.set_queue(QUEUE, QueueChange(paused=True), "me")
    fleet = Fleet(figures.recorder)
    fleet.leads(True)
    carry_out(fleet.look(session))
    assert figures.count("queue_lag_seconds", QUEUE) == 0
    assert figures.count("queue_oldest_due_seconds", QUEUE) >= 60
    assert figures.count("queue_paused", QUEUE) == 1


def test_an_empty_queue_has_no_ages_and_what_is_gone_is_not_shown_any_more(
    session: Session, figures: Figures, lab: Lab
) -> None:
    job = new_job(queue=QUEUE)
    session.enqueue_jobs([job])
    fleet = Fleet(figures.recorder)
    fleet.leads(True)
    carry_out(fleet.look(session))
    assert (QUEUE,) in figures.labels("queue_oldest_due_seconds")
    session.cancel_jobs([job.id], "me")
    session.set_queue("others", QueueChange(paused=False), "me")
    carry_out(fleet.look(session))
    assert shown(figures) == SHOWN - {"queue_oldest_due_seconds", "queue_oldest_running_seconds"}
    assert figures.labels("queue_lag_seconds") == {("others",): 0}


def test_a_look_that_ends_after_the_lead_was_lost_shows_nothing(session: Session, figures: Figures) -> None:
    session.enqueue_jobs([new_job(queue=QUEUE)])
    fleet = Fleet(figures.recorder)
    fleet.leads(True)
    look = fleet.look(session)
    next(look)
    fleet.leads(False)
    carry_out(look)
    assert shown(figures) == set()


def view(**live: int | None) -> QueueView:
    return QueueView(
        name=QUEUE, live=LiveQueue(**live), pending=0, scheduled=0, fetched=0, processing=0, succeeded_total=0,
        failed_total=0, retried_total=0, oldest_due_ms=None, live_workers=2, known=True,
    )  # fmt: skip


def worker(queue: str = QUEUE, workers: int = 10, age_ms: int = 0) -> WorkerView:
    return WorkerView(
        worker_id="0" * 26, queue=queue, host="h", pid=1, version="0", slot=1, max_workers=workers, started_at=EPOCH,
        heartbeat_at=EPOCH, heartbeat_age_ms=age_ms, ended_at=None, ended_cause=None, figures=WorkerFigures(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("live", "handlers"),
    [({}, 15), ({"max_workers": 4}, 8), ({"fleet_max_workers": 7}, 7), ({"max_workers": 2, "fleet_max_workers": 7}, 4)],
)
def test_the_capacity_is_what_live_workers_may_run_at_once(live: dict[str, int], handlers: int) -> None:
    workers = [worker(), worker(workers=5), worker("others"), worker(age_ms=60_000)]
    assert capacity(view(**live), workers) == handlers


def test_without_the_right_to_list_workers_only_the_capacity_is_missing(session: Session, figures: Figures) -> None:
    class Blind:
        looks = 0

        def __getattr__(self, name: str) -> object:
            return getattr(session, name)

        def list_workers(self) -> object:
            self.looks += 1
            raise StoreRefused("The EXECUTE permission was denied")

    session.enqueue_jobs([new_job(queue=QUEUE)])
    fleet, blind = Fleet(figures.recorder), Blind()
    fleet.leads(True)
    with capture_logs() as logs:
        for _ in range(2):
            carry_out(fleet.look(blind))  # type: ignore[arg-type]
    assert shown(figures) == SHOWN - {"queue_capacity", "queue_oldest_running_seconds"}
    assert [log["event"] for log in logs] == ["metrics_without_capacity"]
    assert blind.looks == 1


# ── the loop ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class Bench:
    """A counted loop on a store that answers what it is told to."""

    def __init__(self, figures: Figures) -> None:
        self.store, self.boss = FakeStore(), Boss()
        self.store.overrides = {QUEUE: 60_000}
        settings = Settings(
            queues={QUEUE: QueueSettings(name=QUEUE)},
            maintenance=MaintenanceSettings(rescue_interval=60.0),
            metrics=MetricsSettings(fleet_interval=15.0),
        )
        tally = MaintenanceTally(figures.recorder, "main")
        link = StoreLink(self.store, WorkerInfo(worker_id=ME, queue="", host="here", pid=1, version="0"), tally)
        self.loop = MaintenanceLoop(settings, link, self.boss.theirs, FakeSlot(), tally=tally)
        self.now = 1_000.0

    def until(self, seconds: float) -> None:
        """Turn until that much time has passed."""
        end = self.now + seconds
        while self.now < end:
            wait = self.loop.turn(self.now)
            assert wait is not None
            self.now += wait or 0.001
            self.store.seconds += wait or 0.001


@pytest.fixture
def bench(figures: Figures) -> Iterator[Bench]:
    made = Bench(figures)
    yield made
    made.boss.close()


def test_the_leader_looks_as_often_as_the_setting_says_and_nobody_else_does(bench: Bench, figures: Figures) -> None:
    bench.until(59.0)
    looks = bench.store.names().count("list_queues")
    assert 4 <= looks <= 5
    assert figures.count("leader", "main") == 1
    assert (QUEUE,) in figures.labels("workers_active")
    bench.store.leading = False
    bench.until(60.0)
    assert figures.count("leader", "main") == 0
    assert shown(figures) == set()
    looks = bench.store.names().count("list_queues")
    bench.until(120.0)
    assert bench.store.names().count("list_queues") == looks


def test_a_leader_that_has_lost_its_store_shows_nothing_until_it_knows_again(bench: Bench, figures: Figures) -> None:
    bench.until(20.0)
    assert shown(figures)
    bench.store.errors.extend([StoreUnavailable("away")] * 100)
    bench.until(30.0)
    assert (figures.count("leader", "main"), shown(figures)) == (0, set())
    assert figures.count("store_outage_seconds", "maintenance") > 0
    bench.store.errors.clear()
    bench.until(120.0)
    assert figures.count("leader", "main") == 1
    assert shown(figures)


def test_without_a_tally_the_loop_asks_nothing_more(figures: Figures) -> None:
    bench = Bench(figures)
    bench.loop = MaintenanceLoop(
        Settings(queues={QUEUE: QueueSettings(name=QUEUE)}),
        StoreLink(bench.store, WorkerInfo(worker_id=ME, queue="", host="here", pid=1, version="0")),
        bench.boss.theirs,
        FakeSlot(),
    )
    bench.until(59.0)
    assert "list_audit" not in bench.store.names()
    assert bench.store.names().count("list_queues") == 0
    bench.boss.close()


# ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_what_operators_did_is_counted_once_wherever_they_did_it(
    store: Store, session: Session, figures: Figures, lab: Lab
) -> None:
    before = new_job(queue=QUEUE)
    session.enqueue_jobs([before])
    session.cancel_jobs([before.id], "me")
    lab.age_all("AuditLog", "AtUtc", 60_000)
    operators = Operators(figures.recorder)
    operators.took_over(store.now(), 10_000)
    jobs = [new_job(queue=QUEUE, type_key=f"{letter}.v1") for letter in "aabb"]
    session.enqueue_jobs(jobs)
    (running,) = Holder(session, QUEUE).take(1)
    waiting = [job.id for job in jobs if job.id != running.id]
    session.cancel_jobs([running.id, *waiting[:2]], "me")
    carry_out(operators.look(session))
    cancelled = {job.type_key for job in jobs if job.id in waiting[:2]}
    assert {key[1] for key in figures.labels("jobs_dlq")} == cancelled
    assert sum(figures.labels("jobs_dlq").values()) == 2
    assert figures.labels("operator_actions") == {("cancel",): 3}
    carry_out(operators.look(session))
    session.drop_jobs([waiting[0]], "me")
    carry_out(operators.look(session))
    assert figures.labels("operator_actions") == {("cancel",): 3, ("drop",): 1}
    assert sum(figures.labels("jobs_dlq").values()) == 2


def test_more_than_a_page_is_counted_to_the_last_one(store: Store, session: Session, figures: Figures) -> None:
    operators = Operators(figures.recorder)
    operators.took_over(store.now(), 10_000)
    jobs = [new_job(queue=QUEUE) for _ in range(1_000)]
    session.enqueue_jobs(jobs)
    session.cancel_jobs([job.id for job in jobs], "me")
    more = [new_job(queue=QUEUE, type_key="b.v1") for _ in range(100)]
    session.enqueue_jobs(more)
    session.cancel_jobs([job.id for job in more], "me")
    carry_out(operators.look(session))
    assert figures.count("operator_actions", "cancel") == 1_100
    assert figures.labels("jobs_dlq") == {
        (QUEUE, jobs[0].type_key, "Cancelled"): 1_000, (QUEUE, "b.v1", "Cancelled"): 100,
    }  # fmt: skip


def test_a_job_that_has_left_the_dlq_again_is_counted_without_its_type(
    store: Store, session: Session, figures: Figures
) -> None:
    operators = Operators(figures.recorder)
    operators.took_over(store.now(), 10_000)
    job = new_job(queue=QUEUE)
    session.enqueue_jobs([job])
    session.cancel_jobs([job.id], "me")
    session.resurrect_jobs([job.id], "me")
    carry_out(operators.look(session))
    assert figures.labels("jobs_dlq") == {("unknown", "unknown", "Cancelled"): 1}
    assert figures.labels("operator_actions") == {("cancel",): 1, ("resurrect",): 1}


def test_who_takes_over_counts_from_the_last_pass_of_the_one_before(
    store: Store, session: Session, figures: Figures, lab: Lab
) -> None:
    jobs = [new_job(queue=QUEUE) for _ in range(2)]
    session.enqueue_jobs(jobs)
    session.cancel_jobs([jobs[0].id], "me")
    lab.age_all("AuditLog", "AtUtc", 200_000)
    session.cancel_jobs([jobs[1].id], "me")
    lab.age_all("AuditLog", "AtUtc", 50_000)
    watch = LeaderWatch(MaintenanceTally(figures.recorder, "main"))
    watch.leads(Leadership(False, "other", 1, 100_000, store.now()))
    watch.leads(Leadership(True, ME, 2, 100_000, store.now()))
    carry_out(watch.operators.look(session))
    assert figures.count("operator_actions", "cancel") == 1
    # Its next pass, and one after an outage, are no take-over.
    for answer in (Leadership(True, ME, 2, 300_000, store.now()), None, Leadership(True, ME, 2, 400_000, store.now())):
        watch.leads(answer)
        carry_out(watch.operators.look(session))
    assert figures.count("operator_actions", "cancel") == 1


def test_without_the_right_to_read_the_audit_log_nothing_is_counted_of_it(session: Session, figures: Figures) -> None:
    class Blind:
        looks = 0

        def __getattr__(self, name: str) -> object:
            return getattr(session, name)

        def list_audit(self, *_args: object) -> object:
            self.looks += 1
            raise StoreRefused("The EXECUTE permission was denied")

    operators, blind = Operators(figures.recorder), Blind()
    operators.took_over(EPOCH, None)
    with capture_logs() as logs:
        for _ in range(2):
            carry_out(operators.look(blind))  # type: ignore[arg-type]
    assert [log["event"] for log in logs] == ["metrics_without_operators"]
    assert blind.looks == 1
