"""Each limit of the envelope, at its border and one beyond."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.jobs.enqueue import Enqueue, compose
from chokaq.jobs.envelope import MAX_DELAY, Window, check_delay, check_instant
from chokaq.jobs.errors import EnqueueError, PayloadTooLarge
from chokaq.jobs.registry import Registration, Registry
from chokaq.lifecycle.states import KeyScope
from chokaq.store.records import NewJob

REGISTRY = Registry()
REGISTRY.add_job(Registration("note.v1", dict, queue="notes"))
REGISTRY.add_job(Registration("kept.v1", dict, queue="notes", priority=7, scope="retained"))


def new(payload: Any = None, /, *, key: str = "note.v1", limit: int = 1_000_000, **options: Any) -> NewJob:
    return compose(REGISTRY, Enqueue(key, payload, **options), limit)


def test_defaults_come_from_the_registration() -> None:
    job = new({}, key="kept.v1")
    assert (job.queue, job.type_key, job.priority, job.key_scope) == ("notes", "kept.v1", 7, KeyScope.ACTIVE)
    assert len(job.id) == 26
    assert (job.delay_ms, job.due_at, job.tags, job.created_by, job.headers, job.idempotency_key) == (0,) + (None,) * 5


@pytest.mark.parametrize("queue", ["", " ", "a ", " a", "a\n", "a\x00b", "grün", "q" * 256])
def test_a_queue_name_is_1_to_255_printable_ascii_characters(queue: str) -> None:
    assert new(queue="q" * 255).queue == "q" * 255
    with pytest.raises(EnqueueError, match="the queue"):
        new(queue=queue)


@pytest.mark.parametrize("priority", [-1, 1_000_001, True, 1.0, "5"])
def test_a_priority_is_a_whole_number_up_to_a_million(priority: Any) -> None:
    assert [new(priority=edge).priority for edge in (0, 1_000_000)] == [0, 1_000_000]
    with pytest.raises(EnqueueError, match="priority must be a whole number from 0 to 1000000"):
        new(priority=priority)


def test_c44_a_payload_too_large_names_both_sizes() -> None:
    assert len(new({"a": "x" * 92}, limit=100).payload) == 100
    with pytest.raises(PayloadTooLarge, match=r"payload of note\.v1 has 101 bytes; at most 100 are allowed"):
        new({"a": "x" * 93}, limit=100)


def test_c44_the_size_is_that_of_the_escaped_text() -> None:
    with pytest.raises(PayloadTooLarge, match="has 1,200,008 bytes; at most 1,000,000"):
        new({"a": "é" * 200_000})


@pytest.mark.parametrize("created_by", ["x" * 101, "a\0", "\ud800", "😀" * 51, 5])
def test_created_by_holds_100_characters(created_by: Any) -> None:
    assert new(created_by="é" * 100).created_by == "é" * 100
    with pytest.raises(EnqueueError, match="created_by"):
        new(created_by=created_by)


@pytest.mark.parametrize("tags", ["x" * 1_001, "a\0", ["x" * 500, "y" * 500]])
def test_tags_hold_1000_characters(tags: Any) -> None:
    assert new(tags="x" * 1_000).tags == "x" * 1_000
    assert new(tags=["blue", "green"]).tags == "blue,green"
    with pytest.raises(EnqueueError, match="tags"):
        new(tags=tags)


@pytest.mark.parametrize("key", ["", "  \t", "a\x00", "a\x1fb", "x" * 256, "😀" * 128, "\udc00", 7])
def test_an_idempotency_key_is_trimmed_and_holds_255_characters(key: Any) -> None:
    assert new(idempotency_key=" Ключ-7 ").idempotency_key == "Ключ-7"
    assert new(idempotency_key=" " + "x" * 255).idempotency_key == "x" * 255
    with pytest.raises(EnqueueError, match="idempotency key"):
        new(idempotency_key=key)


def test_scopes_have_names_or_a_window() -> None:
    def scope(value: Any, key: str = "note.v1") -> tuple[KeyScope, int | None]:
        job = new(key=key, idempotency_key="k", scope=value)
        return job.key_scope, job.key_window_ms

    assert scope(None) == (KeyScope.ACTIVE, None)
    assert scope(None, "kept.v1") == (KeyScope.RETAINED, None)
    assert scope("active", "kept.v1") == (KeyScope.ACTIVE, None)
    assert scope("Retained") == scope(KeyScope.RETAINED) == (KeyScope.RETAINED, None)
    assert scope(Window(timedelta(minutes=1))) == scope(timedelta(minutes=1)) == (KeyScope.WINDOW, 60_000)


@pytest.mark.parametrize("scope", ["forever", KeyScope.WINDOW, timedelta(0), Window(timedelta(days=4_000)), 5])
def test_a_scope_that_says_nothing_is_refused(scope: Any) -> None:
    with pytest.raises(EnqueueError, match=r"scope must be|window of an idempotency key"):
        new(idempotency_key="k", scope=scope)


def test_a_scope_without_a_key_is_refused() -> None:
    with pytest.raises(EnqueueError, match="give `idempotency_key` as well"):
        new(scope="retained")


def test_headers_are_texts_of_4000_bytes_as_json() -> None:
    headers = {"traceparent": "00-é"}
    job = new(headers=headers)
    assert job.headers is not None
    assert job.headers.isascii()
    assert msgspec.json.decode(job.headers) == headers
    assert len(new(headers={"a": "x" * 3_992}).headers or "") == 4_000
    with pytest.raises(EnqueueError, match="headers take 4,001 bytes"):
        new(headers={"a": "x" * 3_993})


@pytest.mark.parametrize("headers", [{"a": 1}, {1: "a"}, {"a": None}, {"a": "\ud800"}])
def test_headers_that_are_no_texts_are_refused(headers: Any) -> None:
    with pytest.raises(EnqueueError, match="headers"):
        new(headers=headers)


@pytest.mark.parametrize(
    "delay", [-1, -0.001, float("nan"), float("inf"), timedelta(days=-1), MAX_DELAY * 2, 1e300, "5"]
)
def test_a_delay_is_not_negative_and_at_most_ten_years(delay: Any) -> None:
    assert new(delay=MAX_DELAY).delay_ms == MAX_DELAY // timedelta(milliseconds=1)
    with pytest.raises(EnqueueError, match="the delay must be"):
        new(delay=delay)


@given(st.timedeltas(timedelta(0), MAX_DELAY))
def test_a_delay_is_rounded_up_to_the_millisecond(delay: timedelta) -> None:
    rounded = timedelta(milliseconds=check_delay(delay))
    assert timedelta(0) <= rounded - delay < timedelta(milliseconds=1)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)), st.integers(-12, 12))  # noqa: DTZ001 - hypothesis wants naive bounds
def test_an_instant_becomes_utc_and_is_never_early(naive: datetime, hours: int) -> None:
    at = naive.replace(tzinfo=timezone(timedelta(hours=hours)))
    kept = check_instant(at)
    assert kept is not None
    assert kept.utcoffset() == timedelta(0)
    assert timedelta(0) <= kept - at < timedelta(milliseconds=1)
    assert kept.microsecond % 1_000 == 0


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (datetime(2030, 1, 1), "needs a time zone"),  # noqa: DTZ001 - the fault itself
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=-5))), "out of range"),
        (datetime(9000, 1, 1, tzinfo=UTC), "at most ten years ahead"),
        ("2030-01-01", "must be an aware datetime"),
    ],
)
def test_an_instant_that_names_none_is_refused(at: Any, says: str) -> None:
    with pytest.raises(EnqueueError, match=says):
        new(at=at)


def test_delay_and_instant_exclude_each_other() -> None:
    with pytest.raises(EnqueueError, match="not both"):
        new(delay=1, at=datetime.now(UTC))
