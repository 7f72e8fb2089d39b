"""For which jobs the bell is rung; what goes wrong with it after a commit costs no caller its answer."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chokaq import ChokaQ
from chokaq.config.settings import Settings
from chokaq.lifecycle.states import JobStatus
from chokaq.store.client import SOON, due_queues
from chokaq.store.client_thread import ClientThread
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import Enqueued
from tests.support.jobs import new_job


def test_the_bell_is_rung_for_what_is_due_now_or_soon_and_was_created() -> None:
    late = datetime.now(UTC) + timedelta(hours=1)
    jobs = [
        new_job(queue="now"),
        new_job(queue="soon", delay_ms=700),
        new_job(queue="later", delay_ms=round(SOON * 1_000) + 1),
        new_job(queue="past", due_at=datetime.now(UTC) - timedelta(days=1)),
        new_job(queue="late", due_at=late),
        new_job(queue="known"),
    ]
    answers = [Enqueued(job.id, job.queue != "known", JobStatus.PENDING) for job in jobs]
    assert due_queues(jobs, answers) == {"now", "soon", "past"}


def test_a_bell_that_fails_after_the_commit_leaves_the_client_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ChokaQ(Settings(database=DatabaseSettings(url=f"sqlite:///{tmp_path / 'jobs.db'}")))
    app.job("a.v1", dict)
    create = ClientThread.__init__

    def with_a_broken_bell(self: ClientThread, *args: object, **kwargs: object) -> None:
        create(self, *args, **kwargs)  # type: ignore[arg-type]

        def broken(*_: object) -> None:
            raise RuntimeError("the bell is broken")

        self._accepted = broken

    monkeypatch.setattr(ClientThread, "__init__", with_a_broken_bell)
    first, second = app.enqueue_sync("a.v1", {}), app.enqueue_sync("a.v1", {})
    assert first.created
    assert second.created
    app.close()
