"""Whether spans are recorded: the door to `chokaq.observe.tracing`, which needs the extra `otel`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from chokaq.observe.tracing import Tracing

EXTRA = "tracing.enabled is true, but OpenTelemetry is not installed: pip install 'chokaq[otel]', or set it to false"


class TracingNotInstalled(Exception):
    """The extra is missing; the text says what to install."""


def tracing(enabled: bool, relation: str, clean: "Callable[[str], str]") -> "Tracing | None":
    """What records spans; None when it is off, and then nothing is imported. Raises TracingNotInstalled."""
    if not enabled:
        return None
    try:
        from chokaq.observe.tracing import Tracing
    except ImportError as error:
        if (error.name or "").split(".")[0] != "opentelemetry":
            raise
        raise TracingNotInstalled(EXTRA) from None
    return Tracing(relation, clean=clean)


def start_exporting(worker_id: str) -> None:
    """In a worker: see to it that spans go somewhere. Raises TracingNotInstalled, also when the exporter is what is missing."""
    try:
        from chokaq.observe.provider import ExporterMissing, provide
    except ImportError as error:
        if (error.name or "").split(".")[0] != "opentelemetry":
            raise
        raise TracingNotInstalled(EXTRA) from None
    try:
        provide(worker_id)
    except ExporterMissing as error:
        raise TracingNotInstalled(str(error)) from None


def hand_over_spans() -> None:
    """In a worker, before it ends: give the last spans to the exporter; blocks for a second or two at most."""
    from chokaq.observe.provider import hand_over

    hand_over()
