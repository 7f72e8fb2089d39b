"""Spans for OpenTelemetry: one around an enqueue, one around every attempt of a job.

The only modules that import opentelemetry are this one and `chokaq.observe.provider`, and both are imported only when
`tracing.enabled` is true. Names and attributes follow the semantic conventions for messaging; docs/tracing.md lists them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context, attach
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from chokaq.observe.version import package_version

_w3c = TraceContextTextMapPropagator()
Attributes = dict[str, str | int | bool]


class Message(Protocol):
    """A job on its way into the store."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def queue(self) -> str:
        """Its queue."""
        ...

    @property
    def type_key(self) -> str:
        """Its type."""
        ...


class Answer(Protocol):
    """What the store said to it."""

    @property
    def id(self) -> str:
        """The job that stands for the enqueue."""
        ...

    @property
    def created(self) -> bool:
        """False: another one that holds its idempotency key."""
        ...


class Execution(Protocol):
    """A job that is about to run; a JobContext is one."""

    id: str
    type_key: str
    queue: str
    attempt: int
    lease: int
    worker_id: str

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers."""
        ...

    def set_trace_id(self, trace_id: str) -> None:
        """The trace that its lines in the log name."""
        ...


class Sending:
    """An enqueue under way: what goes into its jobs' headers, and its span."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.headers: dict[str, str] = {}
        """The W3C trace context of the span; empty when nobody records spans and none was under way."""
        _w3c.inject(self.headers, trace.set_span_in_context(span))

    def carried(self, headers: Mapping[str, str]) -> None:
        """One of the jobs brings a trace context of its own, which stays as it is: the span refers to it."""
        context = _creation_context(headers)
        if context.is_valid:
            self._span.add_link(context)

    def answered(self, answers: Sequence[Answer]) -> None:
        """The store has answered."""
        if self._span.is_recording():
            duplicates = sum(not answer.created for answer in answers)
            if len(answers) == 1:
                self._span.set_attribute("messaging.message.id", answers[0].id)
                self._span.set_attribute("chokaq.job.created", not duplicates)
            elif duplicates:
                self._span.set_attribute("chokaq.jobs.duplicates", duplicates)


class Attempt:
    """The span of one execution."""

    __slots__ = ("_context", "_span")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._context = trace.set_span_in_context(span)

    def enter(self) -> None:
        """Make it the current span of the context that this is called in, for good: the context is the execution's own."""
        attach(self._context)

    def end(self, outcome: str, error: tuple[str, str, str | None] | None, *, failed: bool) -> None:
        """The handler has ended. `error`: type, message and traceback of what it raised, without secrets."""
        span = self._span
        if span.is_recording():
            span.set_attribute("chokaq.job.outcome", outcome)
            if error is not None:
                kind, message, stack = error
                told: Attributes = {"exception.type": kind, "exception.message": message}
                if stack:
                    told["exception.stacktrace"] = stack
                span.add_event("exception", told)
                if failed:
                    span.set_attribute("error.type", kind)
            if failed:
                span.set_status(Status(StatusCode.ERROR, error[1] if error is not None else outcome))
        span.end()


class Tracing:
    """What an application or a worker records; made once per process."""

    def __init__(self, relation: str = "link", *, clean: Callable[[str], str] = str) -> None:
        """`relation`: `link`, or `child` to make executions children of their enqueue; `clean`: takes secrets out of errors.

        Spans go to the global tracer provider, whoever sets it and whenever.
        """
        self._tracer = trace.get_tracer("chokaq", package_version())
        self._as_child = relation == "child"
        self._clean = clean

    @contextmanager
    def sending(self, jobs: Sequence[Message], *, many: bool) -> Iterator[Sending]:
        """The span of an enqueue, current inside. `many`: by a call for several jobs, however many there are."""
        queues = {job.queue for job in jobs}
        attributes: Attributes = {
            "messaging.system": "chokaq",
            "messaging.operation.name": "enqueue",
            "messaging.operation.type": "send",
        }
        if len(queues) == 1:
            attributes["messaging.destination.name"] = queue = next(iter(queues))
        if many:
            attributes["messaging.batch.message_count"] = len(jobs)
        elif jobs:
            attributes["chokaq.job.type"] = jobs[0].type_key
        name = f"enqueue {queue}" if len(queues) == 1 else "enqueue"
        with self._tracer.start_as_current_span(
            name, kind=SpanKind.PRODUCER, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield Sending(span)
            except BaseException as error:
                kind, message = type(error).__qualname__, self._clean(str(error))
                span.set_attribute("error.type", kind)
                span.add_event("exception", {"exception.type": kind, "exception.message": message})
                span.set_status(Status(StatusCode.ERROR, message))
                raise

    def begin(self, job: Execution) -> Attempt:
        """The span of an attempt, from now on."""
        created = _context_of(job)
        parent = Context()
        if created.is_valid and self._as_child:
            parent = trace.set_span_in_context(trace.NonRecordingSpan(created), parent)
        span = self._tracer.start_span(
            f"process {job.queue}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.system": "chokaq",
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.destination.name": job.queue,
                "messaging.message.id": job.id,
                "messaging.client.id": job.worker_id,
                "chokaq.job.type": job.type_key,
                "chokaq.job.attempt": job.attempt,
                "chokaq.job.lease": job.lease,
            },
            links=[Link(created)] if created.is_valid else None,
        )
        context = span.get_span_context()
        if context.is_valid:
            job.set_trace_id(trace.format_trace_id(context.trace_id))
        return Attempt(span)


def _context_of(job: Execution) -> SpanContext:
    try:
        return _creation_context(job.headers)
    except msgspec.DecodeError:
        # Edited in the database; the handler that reads them will say so.
        return trace.INVALID_SPAN_CONTEXT


def _creation_context(headers: Mapping[str, str]) -> SpanContext:
    """The trace context that a job was enqueued in; an invalid one when it has none."""
    carrier: dict[str, Any] = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    return trace.get_current_span(_w3c.extract(carrier, Context())).get_span_context()
