"""Who is silent for so long that it can only be dead."""

from datetime import UTC, datetime

import msgspec
import pytest

from chokaq.config.settings import QueueSettings, Settings
from chokaq.maintenance.silent import end_silent, is_silent
from chokaq.store.records import Figures, Registration, WorkerView

from .fakes import FakeStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(
    queues={
        "emails": QueueSettings(name="emails", heartbeat=10.0, zombie_timeout=600.0),
        "slow": QueueSettings(name="slow", heartbeat=3_600.0, zombie_timeout=7_200.0),
        "quick": QueueSettings(name="quick", heartbeat=10.0, zombie_timeout=10.0),
    }
)
WORKER = WorkerView(
    worker_id="W" * 26,
    queue="emails",
    host="there",
    pid=1,
    version="0",
    slot=1,
    max_workers=1,
    started_at=NOW,
    heartbeat_at=NOW,
    heartbeat_age_ms=0,
    ended_at=None,
    ended_cause=None,
    figures=Figures(),
)


@pytest.mark.parametrize(
    ("queue", "override_ms", "limit_s"),
    [
        ("emails", None, 600),
        ("emails", 60_000, 60),
        ("emails", 1_000, 30),
        ("slow", None, 10_800),
        ("quick", None, 30),
        # Whoever serves a queue that we do not know may beat as seldom as is allowed; so may maintenance of the slow one.
        ("unknown", None, 10_800),
        ("", None, 10_800),
    ],
)
def test_a_worker_is_taken_for_dead_after_its_zombie_timeout_and_never_before_three_heartbeats(
    queue: str, override_ms: int | None, limit_s: int
) -> None:
    for age_ms, silent in ((limit_s * 1000, False), (limit_s * 1000 + 1, True)):
        worker = msgspec.structs.replace(WORKER, queue=queue, heartbeat_age_ms=age_ms)
        assert is_silent(worker, SETTINGS, {queue: override_ms}) is silent


def test_a_zombie_timeout_that_was_shortened_live_counts_at_once_and_the_registry_alone_is_read_otherwise() -> None:
    store = FakeStore()
    store.workers = [msgspec.structs.replace(WORKER, heartbeat_age_ms=61_000)]
    me = Registration("M" * 26, "", 1)
    assert list(end_silent(store, me, SETTINGS)) != []  # type: ignore[arg-type]
    assert store.names() == ["list_workers", "list_queues"]
    store.calls.clear()
    store.overrides = {"emails": 60_000}
    list(end_silent(store, me, SETTINGS))  # type: ignore[arg-type]
    assert store.calls[2][:3] == ("release_worker", "W" * 26, "crash")
    store.calls.clear()
    store.workers = [msgspec.structs.replace(WORKER, heartbeat_age_ms=30_000)]
    list(end_silent(store, me, SETTINGS))  # type: ignore[arg-type]
    assert store.names() == ["list_workers"]
