"""What an application does with its jobs, on every store."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chokaq import ChokaQ, Enqueue, JobNotFound, JobStatus, PayloadTooLarge, UnknownJobType, Window
from chokaq.config.settings import EnvelopeSettings, Settings
from chokaq.lifecycle.states import KeyScope, Pillar
from chokaq.store.errors import StoreMisconfigured
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Held, WorkerInfo
from tests.support.lab import Lab


class Mail(msgspec.Struct):
    to: str
    text: str = ""


@pytest.fixture
def app(store: Store, store_options: DatabaseSettings) -> Iterator[ChokaQ]:
    with ChokaQ(Settings(database=store_options, envelope=EnvelopeSettings(max_payload_bytes=2_000))) as app:
        app.job("mail.v1", Mail, queue="emails", priority=5, max_attempts=7)
        app.job("note.v1", dict)
        yield app


async def test_a_job_is_stored_as_it_was_enqueued(app: ChokaQ) -> None:
    at = datetime.now(UTC) + timedelta(days=400)
    answer = await app.enqueue(
        Mail("é😀"),
        priority=20,
        at=at,
        tags=["blue", "green"],
        created_by="ada",
        idempotency_key=" k ",
        scope=Window(timedelta(hours=1)),
        headers={"traceparent": "00"},
        queue="others",
    )
    assert (answer.created, answer.status, answer.payload_differs) == (True, JobStatus.PENDING, False)
    job = await app.get(answer.id)
    assert job is not None
    assert (job.queue, job.type_key, job.priority, job.pillar) == ("others", "mail.v1", 20, Pillar.HOT)
    assert timedelta(0) <= job.due_at - at < timedelta(milliseconds=1)
    assert (job.tags, job.created_by, job.idempotency_key, job.key_scope) == ("blue,green", "ada", "k", KeyScope.WINDOW)
    assert (job.payload, job.headers) == ('{"to":"\\u00e9\\ud83d\\ude00","text":""}', '{"traceparent":"00"}')


async def test_a_delay_counts_from_acceptance(app: ChokaQ) -> None:
    answer = await app.enqueue("note.v1", {"n": 1}, delay=timedelta(minutes=5))
    job = await app.get(answer.id)
    assert job is not None
    assert job.due_at - job.created_at == timedelta(minutes=5)


async def test_many_jobs_keep_their_order_and_their_own_options(app: ChokaQ) -> None:
    answers = await app.enqueue_many(
        [Mail("a"), Enqueue("note.v1", {"n": 1}, priority=99), Enqueue(Mail("b"), queue="z")]
    )
    jobs = [await app.get(answer.id) for answer in answers]
    assert [(job.queue, job.priority, job.payload) for job in jobs if job] == [
        ("emails", 5, '{"to":"a","text":""}'),
        ("default", 99, '{"n":1}'),
        ("z", 5, '{"to":"b","text":""}'),
    ]
    assert [answer.id for answer in answers] == sorted(answer.id for answer in answers)
    assert await app.enqueue_many([]) == []


async def test_nothing_of_a_list_with_one_bad_item_is_stored(app: ChokaQ, lab: Lab) -> None:
    with pytest.raises(UnknownJobType):
        await app.enqueue_many([Mail("a"), object()])
    assert lab.count("JobsHot") == 0


async def test_c44_a_payload_above_the_configured_size_is_refused(app: ChokaQ, lab: Lab) -> None:
    with pytest.raises(PayloadTooLarge, match="at most 2,000 are allowed"):
        await app.enqueue(Mail("a", "x" * 2_000))
    assert lab.count("JobsHot") == 0


def test_threads_without_a_loop_have_the_same_calls(app: ChokaQ) -> None:
    first = app.enqueue_sync(Mail("a"), idempotency_key="k")
    again, other = app.enqueue_many_sync([Enqueue(Mail("a"), idempotency_key="k"), Mail("b")])
    assert (again.id, again.created, other.created) == (first.id, False, True)
    job = app.get_sync(first.id)
    assert job is not None
    assert job.payload == '{"to":"a","text":""}'
    assert app.cancel_sync(first.id, reason="not wanted", actor="ada").result == "cancelled"
    assert app.wait_sync(first.id, timeout=10).status is JobStatus.CANCELLED
    with pytest.raises(TimeoutError, match=f"job {other.id} has not ended within"):
        app.wait_sync(other.id, timeout=timedelta(milliseconds=5))
    with pytest.raises(JobNotFound):
        app.wait_sync("0" * 26)


async def test_c43_one_key_from_everywhere_at_once_is_one_job(app: ChokaQ, lab: Lab) -> None:
    answers = await asyncio.gather(
        *(app.enqueue(Mail("a"), idempotency_key="k") for _ in range(20)),
        *(asyncio.to_thread(app.enqueue_sync, Mail("b"), idempotency_key="k") for _ in range(5)),
    )
    assert len({answer.id for answer in answers}) == 1
    assert [answer.created for answer in answers].count(True) == 1
    assert lab.count("JobsHot") == 1


async def test_wait_returns_the_job_once_it_ended(app: ChokaQ, session: Session) -> None:
    answer = await app.enqueue(Mail("a"))
    waiting = asyncio.create_task(app.wait(answer.id, timeout=30))
    await asyncio.wait((waiting,), timeout=0)
    assert not waiting.done()

    def work() -> None:
        worker = session.register_worker(
            WorkerInfo(worker_id="W" * 26, queue="emails", host="h", pid=1, version="1", max_workers=1)
        )
        (job,) = session.fetch_jobs(worker, 1, 1).jobs
        held = [Held(job.id, job.lease)]
        session.start_jobs(worker, held)
        session.archive_succeeded(worker, held)

    await asyncio.to_thread(work)
    job = await waiting
    assert (job.status, job.pillar, job.payload) == (JobStatus.SUCCEEDED, Pillar.ARCHIVE, '{"to":"a","text":""}')


async def test_wait_and_cancel_tell_unknown_and_unfinished_jobs(app: ChokaQ, lab: Lab) -> None:
    answer = await app.enqueue(Mail("a"))
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.01 s"):
        await app.wait(answer.id, timeout=0.01)
    with pytest.raises(JobNotFound):
        await app.wait("0" * 26)
    assert await app.get("0" * 26) is None
    assert (await app.cancel("0" * 26)).result == "unknown"
    assert (await app.cancel(answer.id, reason="not wanted", actor="ada")).result == "cancelled"
    assert (await app.cancel(answer.id)).result == "final"
    for odd in (answer.id + "X", "", "é" * 26):
        assert await app.get(odd) is None
        assert (await app.cancel(odd)).result == "unknown"
        with pytest.raises(JobNotFound):
            await app.wait(odd)
    (entry,) = lab.rows("AuditLog")
    assert (entry["Actor"], entry["Reason"]) == ("ada", "not wanted")


# ── the caller's own transaction ──────────────────────────────────────────────────────────────────────────────────────
async def test_c46_a_job_is_visible_only_after_the_callers_commit(app: ChokaQ, lab: Lab) -> None:
    connection = lab.caller()
    try:
        cursor = connection.cursor()
        one = app.enqueue_in(cursor, Mail("a"), idempotency_key="k")
        many = app.enqueue_many_in(cursor, [Enqueue(Mail("a"), idempotency_key="k"), Mail("b")])
        assert (many[0].id, many[0].created, many[1].created) == (one.id, False, True)
        connection.commit()
        job = await app.get(one.id)
        assert job is not None
        assert job.status is JobStatus.PENDING
    finally:
        connection.close()


async def test_c46_a_job_is_gone_with_the_callers_rollback(app: ChokaQ, lab: Lab) -> None:
    connection = lab.caller()
    try:
        answer = app.enqueue_in(connection.cursor(), Mail("a"))
        assert answer.created
        connection.rollback()
        assert await app.get(answer.id) is None
    finally:
        connection.close()


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_settings_are_read_when_first_needed(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    app = ChokaQ(file)
    app.job("mail.v1", Mail)
    file.write_text("database: sqlite:///there.db\nenvelope: {max_payload_bytes: 100}\n")
    with app:
        app.enqueue_sync(Mail("a"))
        with pytest.raises(PayloadTooLarge):
            app.enqueue_sync(Mail("a" * 100))
    assert (tmp_path / "there.db").exists()


def test_a_wrong_url_is_told_at_the_first_use() -> None:
    app = ChokaQ(Settings(database=DatabaseSettings(url="nonsense://x")))
    app.job("mail.v1", Mail)
    with pytest.raises(StoreMisconfigured, match=r"database\.url"):
        app.enqueue_sync(Mail("a"))


def test_policies_of_code_stand_between_those_of_queue_and_type_in_the_yaml() -> None:
    from chokaq.config.settings import Policy, QueueSettings

    queue = QueueSettings(name="emails", policy=Policy(max_attempts=2, crash_limit=9))
    types: dict[str, dict[str, object]] = {"mail.v1": {"retry_jitter": 0.5}, "other.v1": {"max_attempts": 1}}
    app = ChokaQ(Settings(queues={"emails": queue}, types=types))
    app.job("mail.v1", Mail, max_attempts=7, retry_jitter=3.0)
    policy = app.policy("emails", "Mail.V1")
    assert (policy.max_attempts, policy.crash_limit, policy.retry_jitter) == (7, 9, 0.5)
    assert app.policy("emails", "other.v1").max_attempts == 1


def test_an_application_can_be_bound_to_another_store(tmp_path: Path) -> None:
    def at(name: str) -> Settings:
        return Settings(database=DatabaseSettings(url=f"sqlite:///{tmp_path / name}"))

    with ChokaQ(at("a.db")) as app:
        app.job("mail.v1", Mail)
        first = app.enqueue_sync(Mail("a"))
        with app.bound_to(at("b.db")):
            assert app.get_sync(first.id) is None
        assert app.get_sync(first.id) is not None
        app.bind(at("b.db"))
        assert app.get_sync(first.id) is None


def test_concurrent_first_uses_open_one_lane(tmp_path: Path) -> None:
    app = ChokaQ(Settings(database=DatabaseSettings(url=f"sqlite:///{tmp_path / 'one.db'}")))
    app.job("mail.v1", Mail)
    start = threading.Barrier(8)
    seen: list[Any] = []

    def use() -> None:
        start.wait()
        app.enqueue_sync(Mail("a"))
        seen.append((app._lane, app.services))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    app.close()
    assert len(seen) == 8
    assert len({id(lane) for lane, _ in seen}) == len({id(services) for _, services in seen}) == 1


async def test_closing_does_not_wait_for_the_loops_own_threads(app: ChokaQ) -> None:
    loop, go = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        loop.set_default_executor(executor)
        stuck = loop.run_in_executor(None, go.wait)
        try:
            async with asyncio.timeout(10):
                await app.aclose()
        finally:
            go.set()
        assert await stuck
