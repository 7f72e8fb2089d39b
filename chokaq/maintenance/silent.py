"""Workers that will never say goodbye: their whole host is gone, so no supervisor reports them.

Their jobs come back through the timeouts in any case; but their rows would count as workers, and keep their slots, until the
registry is purged days later.
"""

from collections.abc import Iterable, Mapping

import structlog

from chokaq.config.settings import QueueSettings, Settings
from chokaq.lifecycle.states import DeathCause
from chokaq.maintenance.chores import Chore
from chokaq.maintenance.policies import crash_policies
from chokaq.store.protocol import Session
from chokaq.store.records import DeathNotice, Registration, WorkerView

log = structlog.get_logger("chokaq")

BEATS = 3
"""A worker that has missed fewer heartbeats is not taken for dead, however short its queue's zombie timeout."""
LONGEST_HEARTBEAT = 3_600.0
"""Seconds; what a queue that is not in our configuration may have in its own."""


def end_silent(session: Session, me: Registration, settings: Settings) -> Chore:
    """End every worker silent for longer than its queue's zombie timeout; what it still holds meets the crash policy."""
    yield 0.0
    suspects = [worker for worker in session.list_workers() if worker.worker_id != me.worker_id]
    if not any(is_silent(worker, settings, {worker.queue: 0}) for worker in suspects):
        # Nobody, whatever the overrides say: those are not read for nothing.
        return
    yield 0.0
    overrides = {queue.name: queue.live.zombie_timeout_ms for queue in session.list_queues()}
    for worker in suspects:
        if not is_silent(worker, settings, overrides):
            continue
        log.warning(
            "silent_worker_ended",
            worker_id=worker.worker_id,
            queue=worker.queue,
            host=worker.host,
            silent_for=worker.heartbeat_age_ms // 1000,
        )
        notice = DeathNotice(
            worker_id=worker.worker_id,
            queue=worker.queue,
            cause=DeathCause.CRASH,
            memory_kb=worker.figures.memory_kb,
            last_pulse_ms=worker.heartbeat_age_ms,
        )
        yield 0.0
        while not session.release_worker(me, notice, crash_policies(settings, worker.queue)).done:
            yield 0.0


def is_silent(worker: WorkerView, settings: Settings, overrides: Mapping[str, int | None]) -> bool:
    """True when the worker's last heartbeat is too old for it to live. `overrides`: zombie timeouts set live, by queue, in ms."""
    override = overrides.get(worker.queue)
    zombie_ms = _zombie_timeout(worker.queue, settings) * 1000 if override is None else override
    return worker.heartbeat_age_ms > max(zombie_ms, BEATS * _heartbeat(worker.queue, settings) * 1000)


def _zombie_timeout(queue: str, settings: Settings) -> float:
    return max(one.zombie_timeout for one in _meant(queue, settings))


def _heartbeat(queue: str, settings: Settings) -> float:
    if queue and queue not in settings.queues:
        return LONGEST_HEARTBEAT
    return max(one.heartbeat for one in _meant(queue, settings))


def _meant(queue: str, settings: Settings) -> Iterable[QueueSettings]:
    """A maintenance process has no queue and beats as slowly as the slowest of those it knows."""
    return [settings.queue(queue)] if queue else [*settings.queues.values(), settings.queue("")]
