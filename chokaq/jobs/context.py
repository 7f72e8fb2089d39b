"""What a handler is told about its job, and what it can tell back."""

import math
import re
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

import msgspec

from chokaq.lifecycle.errors import Snooze
from chokaq.lifecycle.failures import cut
from chokaq.lifecycle.states import CancelReason
from chokaq.store.records import FetchedJob

if TYPE_CHECKING:
    from chokaq.jobs.runkeys import HeldKey, RunKeys

MAX_NOTE = 1_000
_headers = msgspec.json.Decoder(dict[str, str])
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class JobContext:
    """One execution of one job. Every member may be used from any thread."""

    __slots__ = (
        "_cancel_reason",
        "_ends",
        "_headers",
        "_job",
        "_lock",
        "_note",
        "_percent",
        "_trace_id",
        "attempt",
        "held_keys",
        "id",
        "keys",
        "lease",
        "queue",
        "returned",
        "type_key",
        "worker_id",
    )

    def __init__(self, job: FetchedJob, queue: str, worker_id: str, timeout: float | None) -> None:
        """`timeout`: seconds this execution may take, from now; None: no limit."""
        self._job = job
        self.id: str = job.id
        self.queue: str = queue
        self.type_key: str = job.type_key
        self.attempt: int = job.attempt_count + 1
        """1 for the first execution."""
        self.worker_id: str = worker_id
        self.lease: int = job.lease
        """Lease number of this claim; (id, lease) names this execution, for example in an outside system."""
        self.keys: RunKeys | None = None
        """For the idempotency middleware: where keys are claimed; None outside a worker."""
        self.held_keys: tuple[HeldKey, ...] = ()
        """For the worker: keys claimed, or asked for, by this execution. Replaced as a whole, so that other threads may read it."""
        self.returned: object = None
        """For middleware: what the handler returned, once it has."""
        self._ends = None if timeout is None else time.time() + timeout
        self._lock = threading.Lock()
        self._headers: Mapping[str, str] | None = None
        self._trace_id: str | None = None
        self._cancel_reason: CancelReason | None = None
        self._percent: int | None = None
        self._note: str | None = None

    def __repr__(self) -> str:
        return f"<JobContext {self.type_key} {self.id} attempt {self.attempt}>"

    @property
    def deadline(self) -> datetime | None:
        """When the handler will be cancelled (UTC, by this host's clock); None: never."""
        # Worked out when asked for: few handlers ask, and it is the dearest part of a context.
        return None if self._ends is None else datetime.fromtimestamp(self._ends, UTC)

    @property
    def priority(self) -> int:
        """The job's priority."""
        return self._job.priority

    @property
    def created_at(self) -> datetime:
        """When the job was accepted (UTC, by the database's clock)."""
        return self._job.created_at

    @property
    def tags(self) -> str | None:
        """The tags given at enqueue."""
        return self._job.tags

    @property
    def created_by(self) -> str | None:
        """Who enqueued the job, by the application's word."""
        return self._job.created_by

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers given at enqueue (trace context and the like); empty when there were none."""
        if self._headers is None:
            text = self._job.headers
            self._headers = _headers.decode(text) if text else {}
        return self._headers

    @property
    def trace_id(self) -> str | None:
        """The trace that this execution belongs to, 32 hexadecimal digits: of its own span when `tracing` is on, else the one in
        the W3C `traceparent` among its headers; None when there is neither.
        """
        if self._trace_id is not None:
            return self._trace_id
        try:
            return trace_id_of(self.headers.get("traceparent", ""))
        except msgspec.DecodeError:
            # Headers that somebody has edited in the database; a log line is no place to fail for them.
            return None

    def set_trace_id(self, trace_id: str) -> None:
        """For the worker: the trace of this execution's span."""
        self._trace_id = trace_id

    # ── cancellation ──────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def cancelled(self) -> bool:
        """True once this execution should end. A plain function polls it, and raises when it gives up: to return is to succeed.

        A coroutine is cancelled as well.
        """
        return self._cancel_reason is not None

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why it should end; None: it should not."""
        return self._cancel_reason

    def request_cancel(self, reason: CancelReason) -> None:
        """Ask this execution to end. The first reason stays."""
        with self._lock:
            if self._cancel_reason is None:
                self._cancel_reason = reason

    # ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def progress(self, percent: float, note: str | None = None) -> None:
        """Report how far the work is; stored with the next heartbeat. Cheap: call it as often as you like.

        `percent` is clamped to 0 … 100; `note` is cut to 1,000 characters. Raises ValueError when `percent` is not a number.
        """
        if math.isnan(percent):
            raise ValueError("progress needs a number from 0 to 100, not NaN")
        value = int(max(0.0, min(100.0, percent)))
        text = None if note is None else cut(note, MAX_NOTE)
        with self._lock:
            self._percent = value
            if text is not None:
                self._note = text

    def take_progress(self) -> tuple[int | None, str | None]:
        """For the worker: what was reported since the last call, as (percent, note); None: nothing new."""
        if self._percent is None:
            return None, None
        with self._lock:
            taken = self._percent, self._note
            self._percent = self._note = None
        return taken

    # ── later ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def snooze(self, delay: float | timedelta) -> NoReturn:
        """End this execution and run the job again after `delay` (seconds or a timedelta), without charging an attempt.

        Raises Snooze, always: let it pass. Raises ValueError when the delay is negative or not a number.
        """
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay)
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a snooze needs a delay of 0 seconds or more, not {delay!r}")
        raise Snooze(seconds)


def trace_id_of(traceparent: str) -> str | None:
    """The trace id in a W3C traceparent; None when it is none."""
    found = _TRACEPARENT.match(traceparent)
    return None if found is None else found[1]
