"""A row that stands there already: a race is settled by the repeat, anything else stops its one job and nobody waits for it."""

import asyncio

from structlog.testing import capture_logs

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.errors import StoreConflict
from chokaq.worker.lane import _CONFLICTS

from .harness import House, Send, eventually


def conflicting(house: House, operations: set[str], job_id: str, times: int) -> list[str]:
    """Let `times` calls of these operations that carry the job meet a row that is already there; the calls made."""
    met: list[str] = []

    def before(name: str, args: tuple[object, ...]) -> None:
        if name in operations and any(job.id == job_id for job in args[1]) and len(met) < times:  # type: ignore[attr-defined]
            met.append(name)
            raise StoreConflict("Violation of PRIMARY KEY constraint 'PK_JobsArchive' (2627)")

    house.store.before = before
    return met


async def test_a_job_the_store_refuses_as_a_duplicate_for_ever_stops_alone(house: House) -> None:
    go = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        await go.wait()

    ids = house.enqueue(8)
    met = conflicting(house, {"archive_succeeded"}, ids[5], 10_000)
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: len(child.slot.running) == 8, "all run")
            go.set()
            await eventually(lambda: child.counts.completed == 8, "all settled")
    view = house.view(ids[5])
    assert (view.status, view.failure_reason, view.error_type) == (
        JobStatus.FAILED,
        FailureReason.FATAL_ERROR,
        "StoreRefused",
    )
    assert "2627" in (view.error_message or "")
    assert [house.stands(job) for job in ids].count(Pillar.ARCHIVE) == 7
    # Alone, in the pair, in the set …: each was tried that often and not once more.
    assert len(met) % _CONFLICTS == 0
    assert len(met) <= 4 * _CONFLICTS
    assert [(log["log_level"], log["job"]) for log in logs if log["event"] == "transition_refused"] == [
        ("error", ids[5])
    ]


async def test_a_race_for_a_row_is_settled_by_the_repeat(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    (job,) = house.enqueue()
    met = conflicting(house, {"archive_succeeded"}, job, _CONFLICTS - 1)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "archived")
    assert len(met) == _CONFLICTS - 1
    assert house.stands(job) is Pillar.ARCHIVE


async def test_a_job_that_cannot_even_be_buried_is_left_to_its_lease_and_loudly_so(house: House) -> None:
    @house.app.handler(Send)
    async def handle(job: Send) -> None:
        if job.n == 0:
            raise ConnectionError("down")

    ids = house.enqueue(3)
    conflicting(house, {"reschedule_for_retry", "archive_failed"}, ids[0], 10_000)
    with capture_logs() as logs:
        async with house.child() as child:
            await eventually(lambda: child.counts.succeeded == 2, "the others are done")
            await eventually(lambda: any(log["event"] == "job_left_to_its_lease" for log in logs), "given up")
            assert await asyncio.wait_for(child.drain(), 20) == 0
    assert house.lab.row(ids[0])["Status"] == JobStatus.PROCESSING


async def test_a_job_that_stands_in_hot_and_archive_does_not_hold_up_its_child(house: House) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    (job,) = house.enqueue()
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 1, "archived")
        columns = (
            "Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, CreatedAtUtc, AgeFromUtc, KeyScope, "
            "PayloadHash, Payload"
        )
        house.lab.execute(f"INSERT INTO JobsHot (Status, IsReady, {columns}) SELECT 0, 1, {columns} FROM JobsArchive")
        house.enqueue(2)
        await eventually(lambda: child.counts.succeeded == 4, "the others are done, and the double one, too")
    assert child.counts.failed == 0
    assert house.lab.where(job) == [Pillar.ARCHIVE]
