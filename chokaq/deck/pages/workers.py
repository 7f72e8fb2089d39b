"""The processes that work: where they are, how they do, what they hold; and draining one."""

from chokaq.deck.pages import words
from chokaq.deck.pages.dialogs import Question, Values
from chokaq.deck.pages.jobs_table import progress
from chokaq.deck.pages.nodes import Node, button, dash, el, link, when
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td, th
from chokaq.deck.shown import WorkerRow
from chokaq.deck.topics import WORKERS
from chokaq.lifecycle.states import JobStatus
from chokaq.operations.errors import OperationError
from chokaq.store.records import WorkerView

_SHOWN_JOBS = 8
_SLOW_LOOP_MS = 500


class WorkersPage:
    """The registry."""

    def __init__(self, screen: Screen, *, ended: bool) -> None:
        """`ended`: also those that ended within the last week."""
        self._screen, self._ended = screen, ended
        toggle = link(
            screen.url("/workers", None if ended else {"ended": "1"}),
            "Hide the ended ones" if ended else "Show those that ended, too",
        )
        screen.heading("Workers", toggle)
        self.part = screen.part(self._read, self._draw)
        screen.on("drain", self._drain)

    async def open(self) -> None:
        """Read, then listen."""
        await self._screen.open(self.part)
        self._screen.listen(WORKERS, self.part)

    async def _read(self) -> list[WorkerRow]:
        return await self._screen.desk.reads.workers(ended=self._ended)

    def _draw(self, rows: list[WorkerRow]) -> list[Node]:
        if not rows:
            return [empty("No worker is running.", "Start one: chokaq worker. It appears here within a second.")]
        headings = head(
            "Worker",
            "State",
            "Queue",
            th("Running", kind="num"),
            "Holds now",
            th("Memory", kind="num"),
            th("Loop lag", kind="num"),
            "Heartbeat",
            th("Actions" if self._screen.user.may_change else "", kind="actions"),
        )
        return [table(headings, [self._row(row) for row in rows], "rows", "Workers")]

    def _row(self, row: WorkerRow) -> Node:
        worker, figures = row.worker, row.worker.figures
        slow = figures.loop_lag_ms >= _SLOW_LOOP_MS
        beat = when(worker.heartbeat_at) if worker.ended_at is None else dash()
        busy = el(
            "span",
            f"{figures.running:,} of {worker.max_workers:,}",
            el("small.faint.block", f"{figures.buffered:,} buffered"),
        )
        place = el(
            "small.faint.block",
            f"{worker.host} · pid {worker.pid} · {worker.version} · up ",
            when(worker.started_at, "age"),
        )
        return el(
            "tr.off" if worker.ended_at else "tr",
            td("Worker", el("span.id", worker.worker_id), place, kind="wide"),
            td("State", _state(row), kind="nowrap"),
            td("Queue", worker.queue or el("span.faint", "maintenance"), kind="nowrap"),
            td("Running", busy if worker.queue else dash(), kind="num"),
            td("Holds now", *self._jobs(row)),
            td("Memory", words.size(figures.memory_kb * 1_000) if figures.memory_kb else dash(), kind="num"),
            td("Loop lag", el("span.lag.warning" if slow else "span", words.duration(figures.loop_lag_ms)), kind="num"),
            td("Heartbeat", beat, kind="nowrap"),
            td("Actions", self._drain_button(row), kind="actions"),
            key=worker.worker_id,
        )

    def _jobs(self, row: WorkerRow) -> list[Node]:
        running = sorted(
            row.jobs, key=lambda job: (job.status is not JobStatus.PROCESSING, job.started_at or job.due_at)
        )
        lines = [
            el(
                "div.held",
                link(self._screen.job_url(job.id), job.type_key, title=job.id),
                " ",
                when(job.started_at, "age") if job.status is JobStatus.PROCESSING else el("span.faint", "buffered"),
                progress(job) if job.progress is not None else None,
                key=job.id,
            )
            for job in running[:_SHOWN_JOBS]
        ]
        if len(running) > _SHOWN_JOBS:
            lines.append(el("div.faint", f"and {len(running) - _SHOWN_JOBS:,} more"))
        return list(lines) or [el("span.faint", "nothing")]

    def _drain_button(self, row: WorkerRow) -> Node:
        worker = row.worker
        if not self._screen.user.may_change or worker.ended_at or worker.drain_at or not worker.queue:
            return None
        return button("drain", "Drain…", value=worker.worker_id, kind="small", aria_label=f"Drain {worker.worker_id}")

    def _drain(self, value: object) -> None:
        worker = self._worker(value)

        async def run(values: Values) -> str:
            answer = await self._screen.desk.actions.drain(self._screen.user, worker.worker_id, values["reason"])
            await self.part.refresh()
            if answer.result != "accepted":
                raise OperationError(f"{worker.worker_id} has ended already, or is unknown; nothing was changed")
            return "Told. It ends once its replacement is up and its jobs have finished."

        told = (
            f"pid {worker.pid} on {worker.host}, queue {worker.queue}: it takes nothing new, finishes what it runs, "
            "and is replaced by a fresh process."
        )
        Question(self._screen, "Drain this worker?", run, body=[el("p", told)], verb="Drain")

    def _worker(self, worker_id: object) -> WorkerView:
        for row in self.part.data if isinstance(self.part.data, list) else []:
            if isinstance(row, WorkerRow) and row.worker.worker_id == worker_id:
                return row.worker
        raise OperationError("this worker is not shown any more")


def _state(row: WorkerRow) -> Node:
    worker = row.worker
    if worker.ended_at is not None:
        return el(
            "span",
            el("span.badge.mute", "ended"),
            el("small.faint.block", worker.ended_cause or "", " ", when(worker.ended_at)),
        )
    if not row.alive:
        return el("span.badge.bad", "silent")
    if worker.drain_at is not None:
        return el("span", el("span.badge.warn", "draining"), el("small.faint.block", when(worker.drain_at)))
    return el("span.badge.good", "live")
