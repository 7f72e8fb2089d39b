"""The state of everything, as overview, queues and workers show it: one look at the store, then arithmetic."""

import msgspec

from chokaq.config.settings import Settings
from chokaq.deck import figures
from chokaq.deck.shown import Claimed, Counted, ErrorFamily, Health, HealthLine, Overview, QueueRow, WorkerRow
from chokaq.lifecycle.circuit import CircuitState
from chokaq.lifecycle.states import JobStatus, Outcome, Pillar
from chokaq.operations.circuits import CircuitStatus, circuit_notes, list_circuits
from chokaq.operations.status import QueueStatus, Rates, is_live, notes, problems
from chokaq.store.looking import Browse, Family, Series
from chokaq.store.protocol import Session
from chokaq.store.records import JobView, QueueView, WorkerView

LARGE = 10_000
"""Counts above it are taken less often."""
COUNTED = 100_000
"""Counts of a queue stop here."""
FAMILIES = 5
SHOWN_RUNNING = 500


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found, besides the counts of queues."""

    workers: list[WorkerView]
    circuits: list[CircuitStatus]
    series: Series
    """The last five minutes, in steps of 5 s."""
    families: list[Family]


def read_board(session: Session) -> Board:
    """Look. Four calls."""
    return Board(
        workers=session.list_workers(),
        circuits=list_circuits(session),
        series=session.read_series(None, figures.RATE_STEP, 300 // figures.RATE_STEP + 1),
        families=session.list_families(None, FAMILIES),
    )


def is_large(queues: list[QueueView]) -> bool:
    """Whether counting took a while, and is to be done less often."""
    return any(sum(_counts(queue)) > LARGE for queue in queues)


def overview(board: Board, queues: list[QueueView], age_ms: int, settings: Settings) -> Overview:
    """The first page."""
    minute, minute_long = figures.recent(board.series, 60)
    five, five_long = figures.recent(board.series, 295)
    failed, succeeded = figures.count(five, Outcome.FAILED), figures.count(five, Outcome.SUCCEEDED)
    oldest = max((queue.oldest_due_ms for queue in queues if queue.oldest_due_ms is not None), default=None)
    sums = [sum(column) for column in zip(*map(_counts, queues), strict=True)] or [0, 0, 0, 0]
    cut = [any(count >= COUNTED for count in column) for column in zip(*map(_counts, queues), strict=True)] or [
        False
    ] * 4
    counted = [Counted(value, age_ms if value > LARGE else 0, more) for value, more in zip(sums, cut, strict=True)]
    return Overview(
        pending=counted[0],
        scheduled=counted[1],
        fetched=counted[2],
        processing=counted[3],
        succeeded_total=sum(queue.succeeded_total for queue in queues),
        failed_total=sum(queue.failed_total for queue in queues),
        retried_total=sum(queue.retried_total for queue in queues),
        per_second_1m=figures.count(minute, Outcome.SUCCEEDED) / minute_long,
        per_second_5m=succeeded / five_long,
        failure_rate_5m=failed / (failed + succeeded) if failed + succeeded else None,
        oldest_due_ms=oldest,
        lag=figures.lag_colour(oldest, settings.deck),
        capacity=capacity(board, queues, settings),
        health=health(board, queues, settings),
        families=[
            ErrorFamily(
                reason=one.reason, error_type=one.error_type, count=one.count, latest=one.latest, message=one.message
            )
            for one in board.families
        ],
        as_of=board.series.now,
    )


def queue_rows(board: Board, queues: list[QueueView], age_ms: int, settings: Settings) -> list[QueueRow]:
    """Every queue with its recent figures."""
    minute, _ = figures.recent(board.series, 60)
    rows = []
    for queue in queues:
        recent = [row for row in minute if row.queue == queue.name]
        lags = figures.histogram(row for row in board.series.rows if row.queue == queue.name)
        yaml = settings.queues.get(queue.name)
        rows.append(
            QueueRow(
                queue=queue,
                lag=figures.lag_colour(queue.oldest_due_ms, settings.deck),
                lag_mean_ms=figures.mean_ms(lags),
                lag_max_ms=figures.highest_ms(lags),
                succeeded_1m=figures.count(recent, Outcome.SUCCEEDED),
                failed_1m=figures.count(recent, Outcome.FAILED),
                retried_1m=figures.count(recent, Outcome.RETRIED),
                max_workers=queue.live.max_workers or (None if yaml is None else yaml.max_workers),
                fleet_max_workers=queue.live.fleet_max_workers or (None if yaml is None else yaml.fleet_max_workers),
                counted_age_ms=age_ms if sum(_counts(queue)) > LARGE else 0,
            )
        )
    return rows


def capacity(board: Board, queues: list[QueueView], settings: Settings) -> int:
    """Handlers that could run at once, now."""
    overrides = {queue.name: queue.live.max_workers for queue in queues}
    return sum(
        overrides.get(worker.queue) or worker.max_workers
        for worker in board.workers
        if worker.queue and is_live(worker, settings)
    )


def health(board: Board, queues: list[QueueView], settings: Settings) -> list[HealthLine]:
    """What is wrong, in words; one line that says so where nothing is."""
    states = [QueueStatus(queue, Rates()) for queue in queues]
    found = problems(states, board.workers, settings)
    about_queues = [text for text in found if text.startswith("The queue ")]
    about_workers = [text for text in found if text not in about_queues]
    lagging = [queue for queue in queues if figures.lag_colour(queue.oldest_due_ms, settings.deck) != "ok"]
    broken, forced = circuit_notes([one for one in board.circuits if one.order or one.state is not CircuitState.CLOSED])
    live = sum(1 for worker in board.workers if worker.queue and is_live(worker, settings))
    lines = [HealthLine("database", "ok", "The database answers.")]
    lines += _lines("workers", "critical", about_workers) or [
        HealthLine(
            "workers", "ok", "No worker is running." if not live else f"{live} worker{'' if live == 1 else 's'} alive."
        )
    ]
    about = [
        *_lines("queues", "critical", about_queues),
        *(
            HealthLine(
                "queues",
                figures.lag_colour(queue.oldest_due_ms, settings.deck),
                f"The queue {queue.name} lags: its oldest due job has waited for {(queue.oldest_due_ms or 0) // 1_000:,} s.",
            )
            for queue in lagging
        ),
        *_lines("queues", "warning", notes(states)),
    ]
    lines += about or [HealthLine("queues", "ok", "Every queue is served in time.")]
    lines += [*_lines("circuits", "critical", broken), *_lines("circuits", "warning", forced)]
    return lines


def worker_rows(session: Session, settings: Settings, *, ended: bool) -> list[WorkerRow]:
    """The registry, each with the jobs it runs."""
    workers = session.list_workers(ended=ended)
    running = session.browse_jobs(Browse(pillar=Pillar.HOT, status=JobStatus.PROCESSING), SHOWN_RUNNING).jobs
    held: dict[str | None, list[JobView]] = {}
    for job in running:
        held.setdefault(job.worker_id, []).append(job)
    return [
        WorkerRow(
            worker=worker,
            alive=worker.ended_at is None and is_live(worker, settings),
            jobs=sorted(held.get(worker.worker_id, []), key=lambda job: (job.started_at or job.created_at, job.id)),
        )
        for worker in workers
    ]


def claimed(session: Session, worker_id: str, settings: Settings) -> Claimed:
    """Who holds a job, and whether it lives."""
    worker = next((one for one in session.list_workers(ended=True) if one.worker_id == worker_id), None)
    if worker is None:
        return Claimed(None, False, "not in the registry any more")
    if worker.ended_at is not None:
        return Claimed(worker, False, f"ended ({worker.ended_cause or 'cause unknown'})")
    seconds = worker.heartbeat_age_ms // 1_000
    if is_live(worker, settings):
        return Claimed(worker, True, f"heartbeat {seconds} s ago")
    return Claimed(worker, False, f"silent for {seconds:,} s")


def _counts(queue: QueueView) -> tuple[int, int, int, int]:
    return queue.pending, queue.scheduled, queue.fetched, queue.processing


def _lines(what: str, state: Health, sentences: list[str]) -> list[HealthLine]:
    return [HealthLine(what, state, sentence) for sentence in sentences]  # type: ignore[arg-type]
