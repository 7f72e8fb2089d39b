"""Everything pages and the API may ask. Answers are shared between all who ask the same within a second."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Literal, TypeVar

import msgspec

from chokaq.config.load import Loaded
from chokaq.config.show import shown_settings
from chokaq.deck import board, figures
from chokaq.deck.access import Refusal
from chokaq.deck.jobpage import read_job
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import Live
from chokaq.deck.preview import read_preview
from chokaq.deck.searching import read_page, search_of, to_query
from chokaq.deck.shared import Shared
from chokaq.deck.shown import (
    AuditPage,
    Charts,
    Circuits,
    CircuitTimeline,
    JobPage,
    JobsPage,
    Overview,
    PriorityRow,
    QueueRow,
    Search,
    Setting,
    WorkerRow,
)
from chokaq.deck.timeline import read_events, timeline
from chokaq.deck.trail import read_trail
from chokaq.operations.circuit_history import CircuitHistory, list_circuit_events
from chokaq.operations.circuits import check_type, list_circuits
from chokaq.operations.errors import OperationError, UnknownJob
from chokaq.operations.jobs import check_id
from chokaq.operations.queues import check_queue
from chokaq.operations.repair import Preview
from chokaq.store.errors import StoreError
from chokaq.store.looking import Series
from chokaq.store.protocol import Session
from chokaq.store.records import QueueView

__all__ = ["Reads", "search_of", "to_query"]

Answer = TypeVar("Answer")

LARGE_COUNTS_KEPT = 5.0
"""Seconds for which counts above 10,000 serve."""
KEPT_OVER_CHANGES = ("counts", "priorities", "series")
"""What a change does not make old at once: it has its own time."""


class Reads:
    """Reads for one Deck. Every method may raise OperationError (out of bounds; the text is for people) or StoreError (the
    database is away: keep what you show; `live.state` says since when)."""

    def __init__(
        self,
        loaded: Loaded,
        lanes: Lanes,
        live: Live,
        refusals: Callable[[], list[Refusal]],
        *,
        types_known: bool,
        elsewhere: Callable[[str], Awaitable[str | None]],
    ) -> None:
        """`elsewhere`: the name of another database that holds a job."""
        self._loaded = loaded
        self._settings = loaded.settings
        self._lanes = lanes
        self._live = live
        self._refusals = refusals
        self._types_known = types_known
        self._elsewhere = elsewhere
        self._shared = Shared()
        self._last: dict[tuple[str | None, int], Series] = {}
        live.on_change(self._changed)

    async def overview(self) -> Overview:
        """Totals, rates, lag, health, top errors."""
        found, (queues, age_ms) = await self._board(), await self._queues()
        return board.overview(found, queues, age_ms, self._settings)

    async def charts(self, span: Literal["hour", "day"] = "hour", queue: str | None = None) -> Charts:
        """Series from the outcome counters. Steps that are over are read once: what a change costs is a read of the last two."""
        if span not in figures.SPANS:
            raise OperationError(f"there is no span {span!r}: hour or day")
        name = None if queue is None else check_queue(queue)
        length, steps = figures.SPANS[span]
        series, _ = await self._shared.ask(("series", span, name), lambda: self._series(name, length, steps))
        found, (queues, _) = await self._board(), await self._queues()
        return figures.charts(series, span, board.capacity(found, queues, self._settings))

    async def queues(self) -> list[QueueRow]:
        """Every queue, by name; deactivated ones too."""
        found, (queues, age_ms) = await self._board(), await self._queues()
        return board.queue_rows(found, queues, age_ms, self._settings)

    async def priorities(self, queue: str) -> list[PriorityRow]:
        """How many jobs of each priority of a queue are due, and how long the oldest has waited; the highest priority first."""
        name = check_queue(queue)
        queues, _ = await self._queues()
        if all(known.name != name for known in queues):
            raise OperationError(f"there is no queue {name!r} here")
        found, _ = await self._shared.ask(
            ("priorities", name),
            lambda: self._run(lambda session: session.list_priorities(name)),
            keep=lambda rows: LARGE_COUNTS_KEPT if sum(row.waiting for row in rows) > board.LARGE else 0.9,
        )
        return [PriorityRow(one, figures.lag_colour(one.oldest_due_ms, self._settings.deck)) for one in found]

    async def jobs(self, where: Search, limit: int = 50, after: str | None = None) -> JobsPage:
        """One page of a list; `limit`: 1 to 500."""
        return await self._ask(("jobs", where, limit, after), lambda session: read_page(session, where, limit, after))

    async def job(self, job_id: str) -> JobPage:
        """Everything about a job."""
        wanted = check_id(job_id)
        try:
            return await self._ask(
                ("job", wanted),
                lambda session: read_job(
                    session, wanted, self._settings, types_known=self._types_known, now=self._live.now()
                ),
            )
        except UnknownJob as error:
            other = await self._elsewhere(wanted)
            if other is None:
                raise
            raise UnknownJob(f"{error}. The database {other} holds it: choose that one above") from None

    async def payload(self, job_id: str) -> str:
        """The whole payload, as stored."""
        wanted = check_id(job_id)
        job = await self._run(lambda session: session.get_job(wanted))
        if job is None:
            raise UnknownJob(f"there is no job {wanted}")
        return job.payload or ""

    async def preview(self, where: Search, action: str, maximum: int = 100) -> Preview:
        """What an action by filter (`resurrect`, `drop` or `purge`) on the DLQ would touch now."""
        return await self._run(lambda session: read_preview(session, where, action, maximum))

    async def workers(self, *, ended: bool = False) -> list[WorkerRow]:
        """The registry, newest first."""
        return await self._ask(
            ("workers", ended), lambda session: board.worker_rows(session, self._settings, ended=ended)
        )

    async def circuits(self) -> Circuits:
        """Every circuit that met a failure or an order, the open ones first."""
        return await self._ask(("circuits",), list_circuits)

    async def circuit_events(
        self, type_key: str, limit: int = 50, after: str | None = None, *, tries: bool = False
    ) -> CircuitHistory:
        """What the circuits of a type did within the last 7 days, one page; `limit`: 1 to 500."""
        return await self._ask(
            ("circuit_events", type_key, limit, after, tries),
            lambda session: list_circuit_events(session, type_key, limit, after, tries=tries),
        )

    async def circuit_timeline(self, type_key: str) -> CircuitTimeline:
        """How many workers' circuits of a type were not closed, over the last 24 h, and what was ordered."""
        circuits = await self.circuits()
        events = await self._ask(("circuit_timeline", type_key), lambda session: read_events(session, type_key))
        return timeline(check_type(type_key).lower(), events, circuits, self._live.now())

    async def audit(
        self,
        *,
        target: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> AuditPage:
        """One page of the audit log; `limit`: 1 to 200. More than one filter looks at 2,000 entries a page."""
        return await self._ask(
            ("audit", target, actor, action, limit, after),
            lambda session: read_trail(session, target=target, actor=actor, action=action, limit=limit, after=after),
        )

    async def settings(self) -> list[Setting]:
        """Every option as it holds, with where it came from; passwords hidden."""
        return [Setting(row.path, row.value, row.origin) for row in shown_settings(self._loaded)]

    async def refusals(self) -> list[Refusal]:
        """Who this Deck process refused what, newest first, at most 200."""
        return self._refusals()

    # ── how they are read ─────────────────────────────────────────────────────────────────────────────────────────────
    async def _board(self) -> board.Board:
        return await self._ask(("board",), board.read_board)

    async def _queues(self) -> tuple[list[QueueView], int]:
        """Counts of queues and their age in milliseconds."""
        found, age = await self._shared.ask(
            ("counts",),
            lambda: self._run(lambda session: session.list_queues()),
            keep=lambda queues: LARGE_COUNTS_KEPT if board.is_large(queues) else 0.9,
        )
        return found, round(age * 1_000)

    async def _series(self, queue: str | None, length: int, steps: int) -> Series:
        key = (queue, length)
        before = self._last.get(key)
        wanted = steps
        if before is not None:
            passed = int((datetime.now(UTC) - before.now).total_seconds() // length) + 2
            wanted = min(steps, max(2, passed))
        fresh = await self._run(lambda session: session.read_series(queue, length, wanted))
        if before is not None and wanted < steps:
            fresh = _joined(before, fresh, length, wanted, steps)
        self._last[key] = fresh
        return fresh

    async def _ask(self, key: tuple[object, ...], ask: Callable[[Session], Answer]) -> Answer:
        answer, _ = await self._shared.ask(key, lambda: self._run(ask))
        return answer

    async def _run(self, ask: Callable[[Session], Answer]) -> Answer:
        try:
            return await self._lanes.run(ask)
        except StoreError as error:
            self._live.failed(error)
            raise

    def _changed(self) -> None:
        self._shared.forget(lambda key: isinstance(key, tuple) and key[0] not in KEPT_OVER_CHANGES)


def _joined(before: Series, fresh: Series, length: int, wanted: int, steps: int) -> Series:
    """The steps read now, and those before them from the time before."""
    first = fresh.current.timestamp() - (wanted - 1) * length
    oldest = fresh.current.timestamp() - (steps - 1) * length
    kept = [row for row in before.rows if oldest <= row.start.timestamp() < first]
    return msgspec.structs.replace(fresh, rows=[*kept, *fresh.rows])
