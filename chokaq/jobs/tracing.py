"""The trace context of an enqueue in the headers of its jobs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from chokaq.jobs.envelope import check_headers
from chokaq.jobs.errors import EnqueueError
from chokaq.store.records import NewJob

if TYPE_CHECKING:
    from chokaq.observe.tracing import Sending

_decoder = msgspec.json.Decoder(dict[str, str])


def with_trace(jobs: Sequence[NewJob], sending: "Sending") -> list[NewJob]:
    """The jobs with the span's `traceparent` (and `tracestate`) in their headers.

    A job whose caller gave it a trace context keeps that one, and the span refers to it. Headers that would grow beyond their limit
    stay as they are: tracing refuses no job.
    """
    plain = check_headers(sending.headers)
    return [job if plain is None else _traced(job, plain, sending) for job in jobs]


def _traced(job: NewJob, plain: str, sending: "Sending") -> NewJob:
    if job.headers is None:
        return msgspec.structs.replace(job, headers=plain)
    given = _decoder.decode(job.headers)
    if any(name.lower() == "traceparent" for name in given):
        sending.carried(given)
        return job
    return msgspec.structs.replace(job, headers=_joined(given, sending.headers) or job.headers)


def _joined(given: Mapping[str, str], trace: Mapping[str, str]) -> str | None:
    """Both; without the tracestate, or not at all (None), where there is no room."""
    for added in (trace, {"traceparent": trace["traceparent"]}):
        try:
            return check_headers({**given, **added})
        except EnqueueError:
            continue
    return None
