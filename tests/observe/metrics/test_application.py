"""What an application's own process counts of its enqueues, and where."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

import chokaq
from chokaq import ChokaQ
from chokaq.config.settings import EnvelopeSettings, Settings
from chokaq.jobs.enqueue import Enqueue
from chokaq.jobs.errors import EnqueueError, PayloadTooLarge, UnknownJobType
from chokaq.lifecycle.failures import error_name
from chokaq.observe.metrics import MetricsSettings, instrument
from chokaq.observe.metrics.application import meter_name
from chokaq.observe.metrics.catalogue import BY_NAME
from chokaq.observe.metrics.sink import sql
from chokaq.store.errors import StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import MAX_JOBS_PER_CALL


class Mail(msgspec.Struct):
    to: str


def shop(folder: Path, **settings: Any) -> ChokaQ:
    database = DatabaseSettings(url=f"sqlite:///{folder / 'shop.db'}", retry_base_delay=0.001)
    app = ChokaQ(Settings(database=database, envelope=EnvelopeSettings(max_payload_bytes=200), **settings))
    app.job("mail.v1", queue="emails")(Mail)
    return app


class Counted:
    """An instrumented application and what its registry shows."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.app = shop(folder, **settings)
        self.registry = CollectorRegistry()
        instrument(self.app, registry=self.registry)

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"chokaq_{name}", labels) or 0.0

    def jobs(self, name: str, **labels: str) -> float:
        return self.count(f"jobs_{name}_total", **{"queue": "emails", "type": "mail.v1", **labels})


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    made = Counted(tmp_path)
    yield made
    made.app.close()
    sql.sink = None


def test_created_and_duplicate_are_told_apart(counted: Counted) -> None:
    for key in ("a", "a", "b", None):
        counted.app.enqueue_sync(Mail("x"), idempotency_key=key)
    assert (counted.jobs("enqueued"), counted.jobs("duplicates")) == (3, 1)
    assert counted.count("enqueue_seconds_count", method="enqueue") == 4


def test_coroutines_and_many_at_once_are_counted_alike(counted: Counted) -> None:
    async def work() -> None:
        await counted.app.enqueue(Mail("x"))
        await counted.app.enqueue_many([Mail("x"), Enqueue(Mail("y"), queue="others"), Mail("z")])

    asyncio.run(work())
    counted.app.enqueue_many_sync([Mail("x")] * 2)
    assert counted.jobs("enqueued") == 5
    assert counted.jobs("enqueued", queue="others") == 1
    assert counted.count("enqueue_seconds_count", method="enqueue") == 1
    assert counted.count("enqueue_seconds_count", method="enqueue_many") == 2


def test_what_is_no_job_of_ours_is_refused_under_its_errors_name(counted: Counted) -> None:
    with pytest.raises(UnknownJobType):
        counted.app.enqueue_sync("nothing.v1", {})
    with pytest.raises(PayloadTooLarge):
        counted.app.enqueue_sync(Mail("x" * 500))
    with pytest.raises(EnqueueError):
        counted.app.enqueue_sync(Mail("x"), delay=1, at=None, scope="retained")
    assert counted.jobs("refused", queue="unknown", type="unknown", error="chokaq.jobs.errors.UnknownJobType") == 1
    assert counted.jobs("refused", error="chokaq.jobs.errors.PayloadTooLarge") == 1
    assert counted.jobs("refused", error="chokaq.jobs.errors.EnqueueError") == 1
    assert counted.jobs("enqueued") == 0


def test_names_that_nobody_registered_never_become_labels(counted: Counted) -> None:
    for number in range(5):
        with pytest.raises(UnknownJobType):
            counted.app.enqueue_sync(f"type{number}", {}, queue=f"queue{number}")
    assert counted.jobs("refused", queue="unknown", type="unknown", error="chokaq.jobs.errors.UnknownJobType") == 5


def test_one_bad_item_refuses_the_call_and_is_the_one_counted(counted: Counted) -> None:
    with pytest.raises(PayloadTooLarge):
        counted.app.enqueue_many_sync([Mail("x"), Mail("x" * 500), Mail("y")])
    assert (counted.jobs("enqueued"), counted.jobs("refused", error="chokaq.jobs.errors.PayloadTooLarge")) == (0, 1)


def test_a_store_that_stays_away_refuses_what_it_has_not_accepted(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = counted.app.store
    calls = 0

    class Session:
        def __init__(self) -> None:
            self._session = real_session()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

        def enqueue_jobs(self, jobs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > 1:
                raise StoreUnavailable("away")
            return self._session.enqueue_jobs(jobs)

    real_session = real.session
    monkeypatch.setattr(type(real), "session", lambda _self: Session())
    with pytest.raises(StoreUnavailable, match="away"):
        counted.app.enqueue_many_sync([Mail("x")] * (MAX_JOBS_PER_CALL + 10))
    assert counted.jobs("enqueued") == MAX_JOBS_PER_CALL
    assert counted.jobs("refused", error="chokaq.store.errors.StoreUnavailable") == 10
    retries = counted.app.settings.database.retries
    assert counted.count("sql_retries_total", number="none") == retries


def test_errors_of_the_database_are_counted_by_their_number(counted: Counted, tmp_path: Path) -> None:
    counted.app.enqueue_sync(Mail("x"))
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("ALTER TABLE JobsHot RENAME TO Elsewhere")
    connection.close()
    with pytest.raises(chokaq.StoreError) as raised:
        counted.app.enqueue_sync(Mail("x"))
    assert raised.value.number == "SQLITE_ERROR"
    assert counted.count("sql_errors_total", number="SQLITE_ERROR") == 1
    assert counted.jobs("refused", error=error_name(type(raised.value))) == 1


def test_inside_a_callers_transaction_nothing_is_written_but_the_job(counted: Counted, tmp_path: Path) -> None:
    counted.app.enqueue_sync(Mail("schema"))
    connection = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    before = connection.total_changes
    counted.app.enqueue_in(cursor, Mail("x"))
    one = connection.total_changes - before
    counted.app.count_with(None)
    before = connection.total_changes
    counted.app.enqueue_in(cursor, Mail("x"))
    assert connection.total_changes - before == one
    cursor.execute("ROLLBACK")
    connection.close()
    assert counted.count("enqueue_seconds_count", method="enqueue_in") == 1
    assert counted.jobs("enqueued") == 2


def test_a_caller_that_went_away_is_neither_accepted_nor_refused(counted: Counted) -> None:
    async def work() -> None:
        task = asyncio.create_task(counted.app.enqueue(Mail("x")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(work())
    assert b"chokaq_jobs_refused_total{" not in generate_latest(counted.registry)
    assert counted.count("enqueue_seconds_count", method="enqueue") == 1


def test_budgets_hold_here_too(tmp_path: Path) -> None:
    counted = Counted(tmp_path, metrics=MetricsSettings(max_queues=2, enabled=False))
    for number in range(4):
        counted.app.enqueue_sync(Mail("x"), queue=f"q{number}")
    counted.app.close()
    sql.sink = None
    assert [counted.jobs("enqueued", queue=name) for name in ("q0", "q1", "other")] == [1, 1, 2]
    assert counted.count("metrics_overflows_total", label="queue") == 2


def test_several_applications_share_a_registry(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    (tmp_path / "b").mkdir()
    apps = [shop(tmp_path), shop(tmp_path / "b")]
    for app in apps:
        instrument(app, registry=registry)
        instrument(app, registry=registry)
        app.enqueue_sync(Mail("x"))
        app.close()
    sql.sink = None
    labels = {"queue": "emails", "type": "mail.v1"}
    assert registry.get_sample_value("chokaq_jobs_enqueued_total", labels) == 2


def test_an_application_that_nobody_instruments_counts_nothing(tmp_path: Path) -> None:
    app = shop(tmp_path)
    app.enqueue_sync(Mail("x"))
    app.close()
    assert sql.sink is None


def test_a_meter_gets_the_same_under_its_own_names(tmp_path: Path) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    app = shop(tmp_path, metrics=MetricsSettings(max_queues=1))
    instrument(app, meter=provider.get_meter("shop"))
    app.enqueue_sync(Mail("x"))
    app.enqueue_sync(Mail("x"), queue="others")
    app.close()
    sql.sink = None
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {one.name: one for scope in data.resource_metrics for got in scope.scope_metrics for one in got.metrics}
    provider.shutdown()
    points = {
        (point.attributes["queue"], point.attributes["type"]): point.value
        for point in metrics["chokaq.jobs.enqueued"].data.data_points
    }
    assert points == {("emails", "mail.v1"): 1, ("other", "mail.v1"): 1}
    assert metrics["chokaq.jobs.enqueued"].unit == "{jobs}"
    (point,) = metrics["chokaq.enqueue"].data.data_points
    assert (point.count, tuple(point.explicit_bounds)) == (2, BY_NAME["chokaq_enqueue_seconds"].bounds)
    assert metrics["chokaq.enqueue"].unit == "s"
    assert "chokaq.metrics.overflows" in metrics


def test_names_for_a_meter_become_the_same_names_for_prometheus_again() -> None:
    assert meter_name(BY_NAME["chokaq_jobs_enqueued_total"]) == "chokaq.jobs.enqueued"
    assert meter_name(BY_NAME["chokaq_enqueue_seconds"]) == "chokaq.enqueue"


def test_a_registry_and_a_meter_at_once_are_refused(tmp_path: Path) -> None:
    provider = MeterProvider(shutdown_on_exit=False)
    with pytest.raises(TypeError, match="give a `registry` or a `meter`, not both"):
        instrument(shop(tmp_path), registry=CollectorRegistry(), meter=provider.get_meter("shop"))
    provider.shutdown()
