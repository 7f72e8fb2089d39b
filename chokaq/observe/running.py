"""Which job runs in the present context, so that every log line inside a handler names it, whoever writes it."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, Protocol


class Running(Protocol):
    """What a log line tells of a running job; a JobContext is one."""

    id: str
    type_key: str
    queue: str
    attempt: int

    @property
    def trace_id(self) -> str | None:
        """Of the trace that its work belongs to: 32 hexadecimal digits."""
        ...


_running: ContextVar[Running] = ContextVar("chokaq_running")
enter = _running.set
"""Say, inside a context of its own, which job runs there. One store per job: the fields are put together when a line is written."""


def job_fields(
    _logger: object = None, _method: str = "", event: MutableMapping[str, Any] | None = None
) -> MutableMapping[str, Any]:
    """structlog processor: adds `job`, `type`, `queue`, `attempt` and `trace_id` inside a handler; what the line says itself wins.

    An application with logging of its own puts it among its processors, or calls it without arguments for the fields alone.
    """
    fields = {} if event is None else event
    job = _running.get(None)
    if job is not None:
        fields.setdefault("job", job.id)
        fields.setdefault("type", job.type_key)
        fields.setdefault("queue", job.queue)
        fields.setdefault("attempt", job.attempt)
        if (trace_id := job.trace_id) is not None:
            fields.setdefault("trace_id", trace_id)
    return fields
