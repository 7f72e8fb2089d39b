"""Where a worker's spans go: to the provider that its application has set, else to one made here from the OTEL_* variables."""

import os
import threading
from importlib.metadata import entry_points
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

log = structlog.get_logger("chokaq")

FLUSH_SECONDS = 1.5
"""How long the end of a worker waits for its last spans: less than the supervisor keeps back for the release of what it held."""
_GROUP = "opentelemetry_traces_exporter"


class ExporterMissing(Exception):
    """OTEL_TRACES_EXPORTER names what is not installed; the text says what to do."""


def provide(worker_id: str) -> None:
    """See to it that this process has a tracer provider. Call it after the fork, when the application has been imported.

    Without one of the application's own: the SDK's, with a batching exporter. OTEL_TRACES_EXPORTER (default `otlp`, over HTTP
    unless OTEL_EXPORTER_OTLP_PROTOCOL says grpc; `none`; any other that is installed), OTEL_EXPORTER_OTLP_…,
    OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have their usual meaning. Raises ExporterMissing.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        log.info("tracing_started", exporter="the application's own")
        return
    names = [name.strip() for name in os.environ.get("OTEL_TRACES_EXPORTER", "otlp").split(",") if name.strip()]
    provider = TracerProvider(resource=_resource(worker_id), shutdown_on_exit=False)
    for name in names:
        if name != "none":
            provider.add_span_processor(BatchSpanProcessor(_exporter(name)))
    trace.set_tracer_provider(provider)
    log.info("tracing_started", exporter=", ".join(names) or "none")


def hand_over(seconds: float = FLUSH_SECONDS) -> None:
    """Give the last spans to the exporter, within `seconds`; blocks so long. Never raises."""
    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "force_flush"):
        return
    done: list[object] = []

    def flush() -> None:
        try:
            done.append(provider.force_flush(int(seconds * 1000)))
        except Exception as error:  # noqa: BLE001 - an exporter's own code; every job is settled by now
            done.append(error)

    thread = threading.Thread(target=flush, name="chokaq-spans", daemon=True)
    thread.start()
    thread.join(seconds)
    if done != [True]:
        log.warning("spans_lost", problem=str(done[0]) if done else f"the exporter took longer than {seconds:g} s")


def _resource(worker_id: str) -> Resource:
    resource = Resource.create({"service.instance.id": worker_id})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "chokaq"}))
    return resource


def _exporter(name: str) -> Any:
    if name == "otlp":
        protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        name = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
    found = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        hint = "opentelemetry-exporter-otlp-proto-grpc" if name == "otlp_proto_grpc" else "the package that brings it"
        raise ExporterMissing(
            f"tracing: the exporter {name} is not installed: install {hint}, or set OTEL_TRACES_EXPORTER to another one, or none"
        )
    return found.load()()
