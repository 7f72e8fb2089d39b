"""What a handler is told, and what it can tell back."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chokaq import CancelReason, JobContext, Snooze
from chokaq.store.records import FetchedJob

CREATED = datetime(2026, 1, 2, tzinfo=UTC)


def context(timeout: float | None = None, **more: Any) -> JobContext:
    fields: dict[str, Any] = {
        "id": "01J0000000000000000000000A",
        "type_key": "mail.v1",
        "payload": "{}",
        "lease": 4,
        "priority": 20,
        "attempt_count": 2,
        "crash_count": 0,
        "created_at": CREATED,
        "due_at": CREATED,
        "age_ms": 5,
    }
    return JobContext(FetchedJob(**{**fields, **more}), "emails", "W", timeout)


def test_a_context_tells_who_where_and_how_often() -> None:
    ctx = context(tags="blue", created_by="ada", headers='{"traceparent":"00-\\u00e9"}')
    assert (ctx.id, ctx.queue, ctx.type_key) == ("01J0000000000000000000000A", "emails", "mail.v1")
    assert (ctx.attempt, ctx.worker_id, ctx.lease, ctx.priority) == (3, "W", 4, 20)
    assert (ctx.created_at, ctx.tags, ctx.created_by) == (CREATED, "blue", "ada")
    assert ctx.headers == {"traceparent": "00-é"}
    assert context().headers == {}


def test_the_deadline_lies_the_timeout_ahead() -> None:
    before = datetime.now(UTC)
    deadline = context(timeout=60).deadline
    assert deadline is not None
    assert before + timedelta(seconds=60) <= deadline <= datetime.now(UTC) + timedelta(seconds=60)
    assert context().deadline is None


def test_progress_is_clamped_and_taken_once() -> None:
    ctx = context()
    assert ctx.take_progress() == (None, None)
    ctx.progress(50, "half")
    ctx.progress(250)
    assert ctx.take_progress() == (100, "half")
    assert ctx.take_progress() == (None, None)
    ctx.progress(-3)
    assert ctx.take_progress() == (0, None)
    ctx.progress(float("inf"))
    assert ctx.take_progress() == (100, None)
    with pytest.raises(ValueError, match="not NaN"):
        ctx.progress(float("nan"))


def test_a_note_can_always_be_stored() -> None:
    ctx = context()
    ctx.progress(1, "😀" * 1_000 + "\ud800\0")
    note = ctx.take_progress()[1]
    assert note is not None
    assert len(note.encode("utf-16-le")) <= 2_000
    assert "\0" not in note


def test_progress_from_many_threads_is_never_torn() -> None:
    ctx = context()
    start = threading.Barrier(4)

    def report(number: int) -> None:
        start.wait()
        for _ in range(500):
            ctx.progress(number, str(number))

    threads = [threading.Thread(target=report, args=(number,)) for number in (10, 20, 30)]
    for thread in threads:
        thread.start()
    start.wait()
    seen = []
    while any(thread.is_alive() for thread in threads):
        seen.append(ctx.take_progress())
    for thread in threads:
        thread.join()
    seen.append(ctx.take_progress())
    taken = [pair for pair in seen if pair != (None, None)]
    assert taken
    assert all(str(percent) == note for percent, note in taken)


def test_the_first_reason_to_stop_stays() -> None:
    ctx = context()
    assert (ctx.cancelled, ctx.cancel_reason) == (False, None)
    ctx.request_cancel(CancelReason.TIMEOUT)
    ctx.request_cancel(CancelReason.SHUTDOWN)
    assert (ctx.cancelled, ctx.cancel_reason) == (True, CancelReason.TIMEOUT)


@pytest.mark.parametrize("delay", [90, 90.0, timedelta(seconds=90)])
def test_a_snooze_carries_its_delay_in_seconds(delay: Any) -> None:
    with pytest.raises(Snooze) as raised:
        context().snooze(delay)
    assert raised.value.delay == 90.0


@pytest.mark.parametrize("delay", [-1, float("inf"), float("nan"), timedelta(seconds=-1)])
def test_a_snooze_needs_a_real_delay(delay: Any) -> None:
    with pytest.raises(ValueError, match="snooze needs"):
        context().snooze(delay)
