"""The leader's work as chores: generators that make one short store call at a time and say how long to pause before the next.

Between two calls the loop carries out death notices and takes orders, so that no chore delays the release of a dead worker.
"""

from collections.abc import Iterator

import structlog

from chokaq.config.settings import Settings
from chokaq.maintenance.policies import crash_policies
from chokaq.store.protocol import Session
from chokaq.store.records import Registration, Released

log = structlog.get_logger("chokaq")

Chore = Iterator[float]
"""Seconds to pause before the next step."""

PURGE_PAUSE = 0.1
"""Between two batches of a purge: a backlog of a million rows must not keep the hot path waiting."""


def rescue(session: Session, me: Registration, settings: Settings) -> Chore:
    """Every queue: buffered jobs whose lease has run out return, running ones meet the crash policy (design §4).

    Each page starts where the one before ended, so rows that may not be touched never hide those behind them.
    """
    log.debug("rescue_started")
    for name in session.hot_queues():
        queue = settings.queue(name)
        policies = crash_policies(settings, name)
        abandoned_ms, zombie_ms = round(queue.fetched_timeout * 1000), round(queue.zombie_timeout * 1000)
        cursor: str | None = None
        while True:
            yield 0.0
            page = session.recover_abandoned(me, name, abandoned_ms, cursor)
            if counts := _counts(page):
                log.warning("abandoned_recovered", queue=name, **counts)
            cursor = page.cursor
            if cursor is None:
                break
        while True:
            yield 0.0
            page = session.archive_zombies(me, name, zombie_ms, policies, cursor)
            if counts := _counts(page):
                log.warning("zombies_archived", queue=name, **counts)
            cursor = page.cursor
            if cursor is None:
                break


def retention(session: Session, settings: Settings, known: frozenset[str]) -> Chore:
    """Delete what is older than its queue's retention, in batches.

    Only queues of our own configuration (`known`), whoever leads: a fleet may be several deployments, each with its own queues
    and its own word on how long their archive is kept. Two that delete the same rows only share the work.
    """
    size = settings.maintenance.batch_size
    for name in sorted(known):
        queue = settings.queue(name)
        if queue.archive_retention is not None:
            yield 0.0
            while session.purge_archive(name, round(queue.archive_retention * 1000), size) >= size:
                yield PURGE_PAUSE
        if queue.dlq_retention is not None:
            yield 0.0
            while session.purge_dlq(name, round(queue.dlq_retention * 1000), size) >= size:
                yield PURGE_PAUSE


def leftovers(session: Session, settings: Settings) -> Chore:
    """Delete what is left over of keys, ended workers and counters, in batches."""
    size = settings.maintenance.batch_size
    yield 0.0
    while session.purge_leftovers(size) >= size:
        yield PURGE_PAUSE


def roll_up(session: Session) -> Chore:
    """Fold old counters."""
    yield 0.0
    session.roll_up()


def _counts(page: Released) -> dict[str, int]:
    """How many jobs went where, without the zeros."""
    counts = {name: getattr(page, name) for name in ("pending", "zombies", "poisoned", "failed", "cancelled")}
    return {name: count for name, count in counts.items() if count}
