"""One span per attempt: what it is called, what it refers to, how it ended."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from chokaq.config.settings import Policy, TracingSettings
from chokaq.jobs.context import JobContext
from chokaq.lifecycle.errors import FatalError, Snooze
from tests.support.spans import named, recorded, traceparent

from .harness import KEY, QUEUE, House, Send, eventually

ONCE = Policy(max_attempts=1, execution_timeout=0.05)
NAME = f"process {QUEUE}"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return recorded()


def traced(house: House, relation: str = "link", **settings: Any) -> House:
    """The house, with tracing on, for its child and for its application."""
    tracing = TracingSettings(enabled=True, relation=relation)  # type: ignore[arg-type]
    house.settings = msgspec.structs.replace(house.settings, tracing=tracing, **settings)
    house.app.bind(house.settings)
    return house


async def attempts(
    house: House, spans: InMemorySpanExporter, handle: Callable[..., Any], count: int = 1, **job: Any
) -> list[ReadableSpan]:
    """The spans of a job that `handle` runs."""
    house.app.handler(Send)(handle)
    house.enqueue(**job)
    async with house.child():
        await eventually(lambda: len(named(spans.get_finished_spans(), NAME)) == count, "ended")
    return named(spans.get_finished_spans(), NAME)


def outcome(span: ReadableSpan) -> tuple[object, StatusCode, object]:
    assert span.attributes is not None
    return span.attributes["chokaq.job.outcome"], span.status.status_code, span.attributes.get("error.type")


async def test_an_attempt_links_to_its_enqueue_and_is_a_trace_of_its_own(
    house: House, spans: InMemorySpanExporter
) -> None:
    traced(house)
    inside: list[Any] = []

    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        inside.extend((trace.get_current_span().get_span_context(), ctx.trace_id, ctx.headers["traceparent"]))
        with trace.get_tracer("shop").start_as_current_span("work"):
            await asyncio.sleep(0)

    async with house.child():
        told = await house.app.enqueue(Send(1))
        await eventually(lambda: bool(named(spans.get_finished_spans(), NAME)), "ended")
    found = spans.get_finished_spans()
    [enqueue], [run], [work] = (named(found, name) for name in (f"enqueue {QUEUE}", NAME, "work"))
    assert (enqueue.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert run.parent is None
    assert [link.context.span_id for link in run.links] == [enqueue.context.span_id]
    assert run.context.trace_id != enqueue.context.trace_id
    assert inside == [run.context, f"{run.context.trace_id:032x}", traceparent(enqueue)]
    assert work.parent is not None
    assert work.parent.span_id == run.context.span_id
    assert run.attributes is not None
    assert dict(run.attributes) == {
        "messaging.system": "chokaq",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": QUEUE,
        "messaging.message.id": told.id,
        "messaging.client.id": run.attributes["messaging.client.id"],
        "chokaq.job.type": KEY,
        "chokaq.job.attempt": 1,
        "chokaq.job.lease": 1,
        "chokaq.job.outcome": "succeeded",
    }
    assert len(str(run.attributes["messaging.client.id"])) == 26
    assert run.status.status_code is StatusCode.UNSET
    assert run.instrumentation_scope is not None
    assert run.instrumentation_scope.name == "chokaq"


async def test_as_a_child_it_stands_in_the_trace_of_its_enqueue(house: House, spans: InMemorySpanExporter) -> None:
    traced(house, "child")

    @house.app.handler(Send)
    async def handle(_job: Send) -> None: ...

    async with house.child():
        await house.app.enqueue(Send(1))
        await eventually(lambda: bool(named(spans.get_finished_spans(), NAME)), "ended")
    [enqueue], [run] = (named(spans.get_finished_spans(), name) for name in (f"enqueue {QUEUE}", NAME))
    assert run.parent is not None
    assert (run.parent.span_id, run.context.trace_id) == (enqueue.context.span_id, enqueue.context.trace_id)
    assert [link.context.span_id for link in run.links] == [enqueue.context.span_id]


async def test_every_attempt_has_a_span_and_each_says_how_it_ended(
    build: Callable[..., House], spans: InMemorySpanExporter
) -> None:
    house = traced(build(policy=Policy(max_attempts=2, retry_base_delay=0.001, retry_jitter=0.0)))

    async def handle(_job: Send) -> None:
        raise ConnectionError("mssql://sa:hunter2@h/d is away")

    first, second = await attempts(house, spans, handle, 2)
    assert outcome(first) == ("retried", StatusCode.ERROR, "ConnectionError")
    assert outcome(second) == ("failed", StatusCode.ERROR, "ConnectionError")
    assert [span.attributes and span.attributes["chokaq.job.attempt"] for span in (first, second)] == [1, 2]
    assert first.context.trace_id != second.context.trace_id
    [event] = first.events
    assert event.attributes is not None
    assert event.name == "exception"
    assert event.attributes["exception.type"] == "ConnectionError"
    assert event.attributes["exception.message"] == first.status.description == "mssql://sa:***@h/d is away"
    assert "in handle" in str(event.attributes["exception.stacktrace"])
    assert "hunter2" not in repr((first.to_json(), second.to_json()))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Snooze(60), ("released", StatusCode.UNSET, None)),
        (FatalError("no"), ("failed", StatusCode.ERROR, "chokaq.lifecycle.errors.FatalError")),
    ],
)
async def test_a_snooze_is_no_error_and_a_fatal_one_is(
    build: Callable[..., House], spans: InMemorySpanExporter, error: Exception, expected: tuple[object, ...]
) -> None:
    async def handle(_job: Send) -> None:
        raise error

    [span] = await attempts(traced(build(policy=ONCE)), spans, handle)
    found = outcome(span)
    assert found[:2] == expected[:2]
    assert (found[2] is None) == (expected[2] is None)


async def test_a_timeout_is_an_error(build: Callable[..., House], spans: InMemorySpanExporter) -> None:
    async def handle(_job: Send) -> None:
        await asyncio.Event().wait()

    [span] = await attempts(traced(build(policy=ONCE)), spans, handle)
    assert outcome(span) == ("failed", StatusCode.ERROR, "ExecutionTimeout")


async def test_an_unreadable_payload_is_in_the_span(build: Callable[..., House], spans: InMemorySpanExporter) -> None:
    async def handle(_job: Send) -> None: ...

    [span] = await attempts(traced(build(policy=ONCE)), spans, handle, payload='{"n":"x"}')
    assert outcome(span)[:2] == ("failed", StatusCode.ERROR)


async def test_a_cancelled_job_is_no_error(house: House, spans: InMemorySpanExporter) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    (job,) = traced(house).enqueue()
    async with house.child() as child:
        await inside.wait()
        house.session.cancel_jobs([job], "anna", None, request="R" * 26)
        await eventually(lambda: child.counts.failed == 1, "cancelled")
    [span] = named(spans.get_finished_spans(), NAME)
    assert outcome(span) == ("cancelled", StatusCode.UNSET, None)


async def test_a_lost_lease_is_told(house: House, spans: InMemorySpanExporter) -> None:
    inside = asyncio.Event()

    @house.app.handler(Send)
    async def handle(_job: Send) -> None:
        inside.set()
        await asyncio.Event().wait()

    (job,) = traced(house).enqueue()
    async with house.child():
        await inside.wait()
        house.lab.execute("UPDATE {JobsHot} SET LeaseNumber = LeaseNumber + 1 WHERE Id = ?", job)
        await eventually(lambda: bool(named(spans.get_finished_spans(), NAME)), "ended")
        house.lab.execute("UPDATE {JobsHot} SET LeaseNumber = LeaseNumber - 1 WHERE Id = ?", job)
        house.lab.execute("DELETE FROM {JobsHot} WHERE Id = ?", job)
    [span] = named(spans.get_finished_spans(), NAME)
    assert outcome(span) == ("lost", StatusCode.UNSET, None)


@pytest.mark.parametrize("headers", [None, '{"traceparent":"nonsense"}', "[1]"])
async def test_a_job_without_a_trace_context_begins_one(
    house: House, spans: InMemorySpanExporter, headers: str | None
) -> None:
    async def handle(_job: Send) -> None: ...

    [span] = await attempts(traced(house), spans, handle, headers=headers)
    assert (span.parent, list(span.links)) == (None, [])
    assert outcome(span)[0] == "succeeded"


async def test_jobs_side_by_side_and_plain_functions_have_spans_of_their_own(
    house: House, spans: InMemorySpanExporter
) -> None:
    seen: dict[str, int] = {}

    def handle(_job: Send, ctx: JobContext) -> None:
        seen[ctx.id] = trace.get_current_span().get_span_context().span_id

    house.app.handler(Send)(handle)
    traced(house).enqueue(10)
    async with house.child() as child:
        await eventually(lambda: child.counts.succeeded == 10, "done")
    found = named(spans.get_finished_spans(), NAME)
    assert {
        str(span.attributes and span.attributes["messaging.message.id"]): span.context.span_id for span in found
    } == seen
    assert len(set(seen.values())) == 10
    assert not trace.get_current_span().get_span_context().is_valid


async def test_off_it_records_nothing(house: House, spans: InMemorySpanExporter) -> None:
    @house.app.handler(Send)
    async def handle(_job: Send, ctx: JobContext) -> None:
        assert "traceparent" not in ctx.headers

    async with house.child() as child:
        await house.app.enqueue(Send(1))
        await eventually(lambda: child.counts.succeeded == 1, "done")
    assert spans.get_finished_spans() == ()
