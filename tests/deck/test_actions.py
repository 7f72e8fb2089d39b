"""What pages may do: the bounds, phrases and checks of the command line, and everybody else sees it at once."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from chokaq import ChokaQ
from chokaq.config.load import Loaded
from chokaq.config.settings import QueueSettings, Settings
from chokaq.deck import actions, topics
from chokaq.deck.desk import Desk
from chokaq.deck.users import Role, User
from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.operations import Action, NotAllowed, OperationError
from chokaq.operations.contracts import check_by
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import AttemptError, Failure, Held
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, TYPE, new_job, new_jobs

ANNA, BOB, VERA = User("anna", Role.OPERATOR), User("bob", Role.OPERATOR), User("vera", Role.VIEWER)
app = ChokaQ(Settings())


@app.job(TYPE, queue=QUEUE)
class SendEmail(msgspec.Struct):
    """What the jobs of these tests are."""

    to: str


@pytest.fixture
async def desk(store: Store, store_options: DatabaseSettings) -> AsyncIterator[Desk]:
    """A desk that knows the application."""
    desk = Desk(Loaded(Settings(database=store_options), {}), store, check=check_by(app.registry))
    yield desk
    await desk.stop()


def stopped(session: Session, count: int) -> list[Held]:
    """Jobs in the DLQ."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(count, payload='{"to":"nobody"}'))
    held = holder.take(count)
    failures = [
        Failure(one.id, one.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, AttemptError("ValueError", "no @"))
        for one in held
    ]
    session.archive_failed(holder.worker, failures)
    return held


async def test_a_payload_is_mended_and_its_job_resurrected_in_one_step(desk: Desk, session: Session) -> None:
    [one] = stopped(session, 1)

    assert await desk.actions.check_payload(one.id, '{"to":7}') is not None
    assert await desk.actions.check_payload(one.id, "{") is not None
    assert await desk.actions.check_payload(one.id, '{"to":"a@example.com"}') is None
    with pytest.raises(OperationError, match="nothing was changed"):
        await desk.actions.resurrect(ANNA, [one.id], "mended", payload='{"to":7}')
    [answer] = await desk.actions.resurrect(ANNA, [one.id], "mended", payload='{"to":"a@example.com"}', priority=50)

    job = session.get_job(one.id)
    assert job is not None
    assert (answer.result, job.status, job.priority) == ("accepted", JobStatus.PENDING, 50)
    assert job.payload == '{"to":"a@example.com"}'
    assert (await desk.reads.job(one.id)).type_known


async def test_an_edit_leaves_alone_what_it_does_not_name(desk: Desk, session: Session) -> None:
    session.enqueue_jobs([job := new_job(payload='{"to":"x"}', tags="acme")])

    await desk.actions.edit(ANNA, job.id, None, priority=3)
    kept = session.get_job(job.id)
    await desk.actions.edit(ANNA, job.id, None, tags="")
    cleared = session.get_job(job.id)

    assert kept is not None
    assert cleared is not None
    assert (kept.priority, kept.tags, kept.payload) == (3, "acme", job.payload)
    assert cleared.tags is None
    with pytest.raises(OperationError, match="nothing to edit"):
        await desk.actions.edit(ANNA, job.id, None)


async def test_many_jobs_and_jobs_of_a_filter_are_confirmed_by_a_phrase(desk: Desk, session: Session) -> None:
    ids = [one.id for one in stopped(session, 25)]

    due = desk.actions.confirmation(Action.RESURRECT, 25)
    assert due is not None
    assert due.phrase == "resurrect 25"
    assert desk.actions.confirmation(Action.RESURRECT, 24) is None
    with pytest.raises(OperationError, match="not confirmed"):
        await desk.actions.resurrect(ANNA, ids, None)
    with pytest.raises(OperationError, match="not confirmed"):
        await desk.actions.resurrect(ANNA, ids[:2], None, by_filter=True)
    answers = await desk.actions.resurrect(ANNA, ids, None, "Resurrect  25")

    assert {answer.result for answer in answers} == {"accepted"}


async def test_two_operators_at_once_each_get_a_true_answer(desk: Desk, session: Session) -> None:
    [one] = stopped(session, 1)

    first, second = await asyncio.gather(
        desk.actions.resurrect(ANNA, [one.id], "again"), desk.actions.drop(BOB, [one.id], "never", "drop 1")
    )

    assert sorted([first[0].result, second[0].result]) == ["accepted", "wrong_state"]
    assert len(session.list_audit(one.id)) == 1


async def test_dropping_needs_a_reason(desk: Desk, session: Session) -> None:
    [one] = stopped(session, 1)

    with pytest.raises(OperationError, match="give the reason"):
        await desk.actions.drop(ANNA, [one.id], None, "drop 1")


async def test_queues_workers_and_circuits_are_steered(desk: Desk, session: Session) -> None:
    holder = Holder(session)

    assert (await desk.actions.pause(ANNA, QUEUE, "slow")).live.paused
    assert not (await desk.actions.resume(ANNA, QUEUE, None)).live.paused
    with pytest.raises(OperationError, match=f"'deactivate {QUEUE}' was to be typed"):
        await desk.actions.deactivate(ANNA, QUEUE, None)
    assert not (await desk.actions.deactivate(ANNA, QUEUE, None, f"deactivate {QUEUE}")).live.active
    assert (await desk.actions.activate(ANNA, QUEUE, None)).live.active
    sized = await desk.actions.set_queue(ANNA, QUEUE, None, max_workers=7.0, zombie_timeout=90.0)
    assert (sized.live.max_workers, sized.live.zombie_timeout_ms) == (7, 90_000)
    assert (await desk.actions.set_queue(ANNA, QUEUE, None, max_workers=None)).live.max_workers is None
    with pytest.raises(OperationError, match="whole number"):
        await desk.actions.set_queue(ANNA, QUEUE, None, max_workers=1.5)
    with pytest.raises(OperationError, match="no override 'colour'"):
        await desk.actions.set_queue(ANNA, QUEUE, None, colour=1)
    assert (await desk.actions.drain(ANNA, holder.id, None)).result == "accepted"
    order = await desk.actions.force_circuit(ANNA, TYPE, "open", "provider down")
    assert order is not None
    assert order.reason == "provider down"
    assert await desk.actions.force_circuit(ANNA, TYPE, "clear", None) is None


async def test_a_running_job_is_told_and_a_waiting_one_cancelled(desk: Desk, session: Session) -> None:
    session.enqueue_jobs([waiting := new_job(), running := new_job()])
    holder = Holder(session)
    [held] = holder.take(1)

    answers = await desk.actions.cancel(ANNA, [waiting.id, running.id, new_id()], "mistake")

    assert sorted(answer.result for answer in answers) == ["cancelled", "requested", "unknown"]
    assert held.id in (waiting.id, running.id)


async def test_a_viewer_is_refused_before_a_phrase_is_asked_for(desk: Desk, session: Session) -> None:
    [one] = stopped(session, 1)

    with pytest.raises(NotAllowed, match="vera may look"):
        await desk.actions.purge(VERA, [one.id], None)

    assert [told.what for told in await desk.reads.refusals()] == ["purge jobs"]


async def test_what_one_does_is_told_to_every_page_of_the_process(desk: Desk, session: Session) -> None:
    Holder(session)
    told = asyncio.Event()
    desk.live.subscribe(topics.AUDIT, told.set)

    await desk.actions.pause(ANNA, QUEUE, None)

    await asyncio.wait_for(told.wait(), 5)
    assert desk.live.looks == 0


async def test_a_zombie_timeout_that_takes_healthy_jobs_for_dead_is_refused(
    store: Store, store_options: DatabaseSettings, session: Session
) -> None:
    Holder(session)
    settings = Settings(database=store_options, queues={QUEUE: QueueSettings(name=QUEUE, heartbeat=10.0)})
    desk = Desk(Loaded(settings, {}), store)

    with pytest.raises(OperationError, match="zombie_timeout"):
        await desk.actions.set_queue(ANNA, QUEUE, None, zombie_timeout=20.0)
    await desk.stop()


async def test_a_resurrection_wakes_an_idle_worker_of_this_host(
    desk: Desk, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[str] = []
    monkeypatch.setattr(actions, "doorbell", lambda _store: rung.append)
    [one] = stopped(session, 1)

    await desk.actions.resurrect(ANNA, [one.id], None)

    assert rung == [QUEUE]
