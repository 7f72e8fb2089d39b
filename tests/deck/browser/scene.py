"""A busy afternoon for the pictures: queues, workers, jobs in every state, errors, circuits, an hour of figures."""

import json
import math
import time
from typing import NamedTuple

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import FailureReason, JobStatus, Outcome
from chokaq.store.circuits import CircuitChange
from chokaq.store.protocol import Session
from chokaq.store.records import AttemptError, Beat, Failure, Figures, Held, NewJob, QueueChange, Registration
from tests.support.ids import new_id
from tests.support.jobs import worker_info
from tests.support.lab import Lab

from .house import House

_TRACE = """Traceback (most recent call last):
  File "/srv/shop/jobs/letters.py", line 41, in send_email
    await smtp.send_message(message)
  File "/srv/shop/mail/smtp.py", line 88, in send_message
    raise SMTPRecipientsRefused(answer)
shop.mail.SMTPRecipientsRefused: 550 5.1.1 recipient unknown"""
_ERRORS = (
    (
        AttemptError("shop.mail.SMTPRecipientsRefused", "550 5.1.1 <nobody@example.com>: recipient unknown", _TRACE),
        9,
        FailureReason.FATAL_ERROR,
    ),
    (
        AttemptError("ConnectionResetError", "[Errno 104] connection reset by peer: partner.example", _TRACE),
        4,
        FailureReason.TRANSIENT,
    ),
    (AttemptError("TimeoutError", "the handler ran for longer than 15 min", _TRACE), 2, FailureReason.TIMEOUT),
)


class Scene(NamedTuple):
    """Jobs to look at."""

    running: str
    failed: str


class _Worker:
    """A worker as a registration and what it holds."""

    def __init__(self, session: Session, queue: str, host: str, **fields: int) -> None:
        info = worker_info(queue, host=host, max_workers=fields.pop("max_workers", 10), **fields)
        self.session = session
        self.worker: Registration = session.register_worker(info)
        self.requests = 0

    def take(self, count: int) -> list[tuple[str, int]]:
        """Fetch and start."""
        self.requests += 1
        held = [
            Held(job.id, job.lease) for job in self.session.fetch_jobs(self.worker, self.requests, count, None).jobs
        ]
        self.session.start_jobs(self.worker, held)
        return [(one.id, one.lease) for one in held]


def set_scene(house: House, lab: Lab) -> Scene:
    """Set it; every figure comes from the store's own operations, but for the hour of outcomes."""
    session = house.session
    emails = _Worker(session, "emails", "worker-1.shop", pid=4101, max_workers=20)
    reports = _Worker(session, "reports", "worker-2.shop", pid=4207, max_workers=3)
    webhooks = _Worker(session, "webhooks", "worker-1.shop", pid=4103, max_workers=50)
    _Worker(session, "", "worker-1.shop", pid=4100)
    failed = _stop(session, emails)
    for priority, count in ((90, 9), (50, 31), (10, 6)):
        starving = _put(session, "emails", "email.send.v1", count, priority)
    for job_id in starving:
        lab.age(job_id, "DueAtUtc", 4_200)
    waiting = _put(session, "webhooks", "webhook.deliver.v3", 12)
    _put(session, "reports", "report.monthly.v1", 3)
    running = reports.take(2)
    beats = [
        Beat(job_id, lease, percent, "half of the pages")
        for (job_id, lease), percent in zip(running, (62, 15), strict=True)
    ]
    session.keep_alive(reports.worker, beats, Figures(2, 0, 3, 212_000))
    session.keep_alive(emails.worker, [], Figures(0, 0, 2, 184_000))
    session.keep_alive(webhooks.worker, [], Figures(0, 0, 640, 301_000))
    for job_id in waiting:
        lab.age(job_id, "DueAtUtc", 7_400)
    _break(
        session, lab, [webhooks, *(_Worker(session, "webhooks", f"worker-{host}.shop", pid=4103) for host in (3, 4))]
    )
    session.force_circuit("report.monthly.v1", Forced.CLOSED, "ben", "the disk is full no more")
    session.set_queue(
        "reports",
        QueueChange(paused=True, zombie_timeout_ms=2_400_000),
        "anna",
        "until the figures of May are corrected",
    )
    session.set_queue("webhooks", QueueChange(fleet_max_workers=60), "anna", "the provider is down")
    _history(lab)
    return Scene(running[0][0], failed)


def _break(session: Session, lab: Lab, workers: list[_Worker]) -> None:
    """Two outages of a provider, seen by three workers a little apart; the second one is not over for the first worker."""
    hours = ((19.0, CircuitState.OPEN), (17.5, CircuitState.CLOSED), (6.0, CircuitState.OPEN), (5.9, CircuitState.HALF_OPEN),
             (4.0, CircuitState.CLOSED))  # fmt: skip
    for at, worker in enumerate(workers):
        for generation, (ago, state) in enumerate(hours, 1):
            _say(session, worker, state, generation, round((ago - at / 3) * 3_600_000))
    session.force_circuit("webhook.deliver.v3", Forced.OPEN, "ben", "the provider asks for an hour")
    lab.age_all("CircuitEvents", "AtUtc", 5_400_000, "Forced IS NOT NULL")
    session.force_circuit("webhook.deliver.v3", Forced.NO, "ben", "the provider is back")
    lab.age_all("CircuitEvents", "AtUtc", 5_400_000, "Forced IS NOT NULL")
    _say(session, workers[0], CircuitState.OPEN, len(hours) + 1, 12_000)


def _say(session: Session, worker: _Worker, state: CircuitState, generation: int, ago: int) -> None:
    is_open = state is CircuitState.OPEN
    told = CircuitChange(
        type_key="webhook.deliver.v3",
        state=state,
        failures=5 if state else 0,
        generation=generation,
        changed_ms=ago,
        next_probe_ms=18_000 if is_open else None,
        last_error="ConnectionResetError",
    )
    session.report_circuits(worker.worker, [told])


def _put(session: Session, queue: str, type_key: str, count: int, priority: int = 10) -> list[str]:
    payload = json.dumps(
        {"to": "nobody@example.com", "template": "welcome", "locale": "de", "items": [{"sku": "A-1", "count": 2}]}
    )
    jobs = [
        NewJob(
            id=new_id(),
            queue=queue,
            type_key=type_key,
            payload=payload,
            priority=priority,
            tags="tenant-12,nightly" if at % 3 else None,
            created_by="shop-web",
            headers='{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}',
        )
        for at in range(count)
    ]
    session.enqueue_jobs(jobs)
    return [job.id for job in jobs]


def _stop(session: Session, worker: _Worker) -> str:
    job_id = ""
    for error, count, reason in reversed(_ERRORS):
        _put(session, "emails", "email.send.v1", count)
        held = worker.take(count)
        session.archive_failed(
            worker.worker, [Failure(id_, lease, JobStatus.FAILED, reason, error) for id_, lease in held]
        )
        job_id = held[-1][0]
    return job_id


def _history(lab: Lab) -> None:
    """An hour of outcomes, every 30 s, straight into the counters: a slot that no worker has."""
    now = int(time.time())
    rows = []
    for step in range(120):
        at = now - 30 * step
        wave = 1 + math.sin(step / 9) / 3
        rows += [
            (at, Outcome.SUCCEEDED, 0, int(5_400 * wave), 1_200_000, (0, 20, 300, 900, int(4_000 * wave), 180)),
            (at, Outcome.RETRIED, FailureReason.TRANSIENT, int(240 * wave) % 90, 0, (0,) * 6),
            (at, Outcome.FAILED, FailureReason.FATAL_ERROR, (step * 7) % 11, 0, (0,) * 6),
            (at, Outcome.FAILED, FailureReason.TIMEOUT, step % 4, 0, (0,) * 6),
        ]
    lags = ", ".join(f"Lag{number}" for number in range(12))
    values = ", ".join(
        f"(9999, 1, {_instant(lab, at)}, 'emails', {int(outcome)}, {int(reason)}, {count}, {ms}, 900, {', '.join(map(str, lag))}, "
        "0, 0, 0, 0, 0, 0)"
        for at, outcome, reason, count, ms, lag in rows
    )
    lab.execute(
        "INSERT INTO {MetricBuckets} (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs, "
        f"{lags}) VALUES {values}"
    )


def _instant(lab: Lab, at: int) -> str:
    return str(at * 1_000) if lab.kind == "sqlite" else f"DATEADD(second, {at}, CAST('1970-01-01' AS datetime2(3)))"
