"""Spans that a test can look at: one tracer provider per process, as OpenTelemetry wants it, and an exporter to empty."""

from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

_exporter = InMemorySpanExporter()


def recorded() -> InMemorySpanExporter:
    """The exporter, empty; the provider is set when this is called for the first time."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(_exporter))
        trace.set_tracer_provider(provider)
    _exporter.clear()
    return _exporter


def named(spans: Sequence[ReadableSpan], name: str) -> list[ReadableSpan]:
    """Those of that name, in the order in which they ended."""
    return [span for span in spans if span.name == name]


def traceparent(span: ReadableSpan) -> str:
    """The W3C header that stands for it."""
    context = span.get_span_context()
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
