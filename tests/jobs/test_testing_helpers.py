"""The helpers for applications' own tests."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from chokaq import CancelReason, ChokaQ, FatalError, JobContext, JobStatus, PayloadError, RegistrationError, Throttled
from chokaq.config.settings import Policy, Settings
from chokaq.jobs.registry import Next
from chokaq.testing import Inbox, run_job, run_job_sync


class Mail(msgspec.Struct):
    to: str


class Outbox(list[str]):
    """A service of the application."""


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def app(outbox: Outbox) -> ChokaQ:
    app = ChokaQ()
    app.job("mail.v1", Mail, queue="emails")
    app.job("follow.v1", dict, queue="others", priority=1)
    app.services.register_value(Outbox, outbox)

    @app.handler(Mail)
    async def send(job: Mail, ctx: JobContext, outbox: Outbox) -> None:
        if job.to == "nobody":
            raise FatalError("there is no such person")
        if job.to == "busy":
            raise Throttled(retry_after=60)
        if job.to == "later":
            ctx.snooze(timedelta(minutes=1))
        if job.to == "down":
            raise ConnectionError("no route")
        ctx.progress(100, "sent")
        outbox.append(f"{job.to} {ctx.attempt}")
        if job.to == "friend":
            await app.enqueue("follow.v1", {"after": job.to})

    @app.handler("follow.v1")
    def follow(job: dict[str, Any], ctx: JobContext, outbox: Outbox) -> None:
        outbox.append(f"follow {job['after']} {ctx.cancelled}")

    return app


async def test_one_job_runs_without_a_store(app: ChokaQ, outbox: Outbox) -> None:
    seen: list[Any] = []

    @app.middleware
    async def watch(job: Any, ctx: JobContext, go_on: Next) -> None:
        seen.append((job, ctx.priority, ctx.tags, ctx.headers, ctx.deadline is not None))
        await go_on()

    ctx = await run_job(app, Mail("ada"), attempt=3, timeout=5, priority=77, tags="t", headers={"a": "b"})
    assert outbox == ["ada 3"]
    assert seen == [(Mail("ada"), 77, "t", {"a": "b"}, True)]
    assert ctx.take_progress() == (100, "sent")


def test_one_job_runs_without_a_loop_and_already_cancelled(app: ChokaQ, outbox: Outbox) -> None:
    run_job_sync(app, "follow.v1", {"after": "x"})
    asyncio.run(run_job(app, "follow.v1", {"after": "y"}, prepare=lambda ctx: ctx.request_cancel(CancelReason.TIMEOUT)))
    assert outbox == ["follow x False", "follow y True"]


async def test_what_the_handler_raises_comes_out(app: ChokaQ) -> None:
    with pytest.raises(FatalError, match="no such person"):
        await run_job(app, Mail("nobody"))
    with pytest.raises(PayloadError):
        await run_job(app, "mail.v1", {"to": 5})
    app.job("idle.v1", dict)
    with pytest.raises(RegistrationError, match=r"idle\.v1 has no handler"):
        await run_job(app, "idle.v1", {})


def test_an_inbox_runs_what_was_enqueued_and_what_that_enqueues(app: ChokaQ, outbox: Outbox) -> None:
    with Inbox(app) as inbox:
        first = app.enqueue_sync(Mail("friend"))
        app.enqueue_sync(Mail("ada"), delay=3600)
        drained = inbox.drain()
        assert outbox == ["friend 1", "follow friend False"]
        assert len(drained.succeeded) == 2
        assert app.wait_sync(first.id, timeout=0).status is JobStatus.SUCCEEDED
        assert inbox.drain().succeeded == []


async def test_an_inbox_tells_failures_apart(app: ChokaQ) -> None:
    with Inbox(app) as inbox:
        gone, busy, later, down = [
            answer.id for answer in await app.enqueue_many([Mail(to) for to in ("nobody", "busy", "later", "down")])
        ]
        unknown = (await app.enqueue("follow.v1", {})).id
        drained = await inbox.adrain()
        assert set(drained.failed) == {gone}
        assert set(drained.retried) == {busy, down, unknown}
        assert isinstance(drained.retried[down], ConnectionError)
        assert drained.snoozed == [later]
        jobs = {job_id: await app.get(job_id) for job_id in (gone, busy, later, down)}
        assert [job.status.label for job in jobs.values() if job] == ["Failed", "Pending", "Pending", "Pending"]
        assert [job.attempt_count for job in jobs.values() if job] == [1, 1, 0, 1]


async def test_an_inbox_exhausts_attempts_by_policy(app: ChokaQ) -> None:
    with Inbox(app, Settings(defaults=Policy(max_attempts=2, retry_base_delay=0.0))) as inbox:
        answer = await app.enqueue(Mail("down"))
        drained = await inbox.adrain()
        assert set(drained.retried) == set(drained.failed) == {answer.id}


async def test_jobs_are_run_in_the_order_of_their_priority(app: ChokaQ, outbox: Outbox) -> None:
    with Inbox(app) as inbox:
        await app.enqueue_many([Mail("a"), Mail("b")])
        await app.enqueue(Mail("c"), priority=500)
        await inbox.adrain()
    assert outbox == ["c 1", "a 1", "b 1"]
