"""The queues: how each one does, and what an operator may do about it."""

from chokaq.deck import reads
from chokaq.deck.pages import words
from chokaq.deck.pages.dialogs import Question, Values
from chokaq.deck.pages.nodes import NOTHING, Child, Node, button, el, link, when
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.priorities import PrioritiesPart
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td, th
from chokaq.deck.shown import QueueRow, Search
from chokaq.deck.topics import QUEUES
from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.operations.confirm import Action
from chokaq.operations.errors import OperationError

_OVERRIDES = (
    ("max_workers", "Workers per child", "1 to 10,000"),
    ("fleet_max_workers", "Fleet cap", "all workers together, 1 to 100,000"),
    ("execution_timeout", "Execution timeout, seconds", "1 to 86,400"),
    ("zombie_timeout", "Zombie timeout, seconds", "1 to 86,400"),
)


class QueuesPage:
    """The table and its actions."""

    def __init__(self, screen: Screen, queue: str | None = None) -> None:
        """`queue`: the one of which the priorities are shown."""
        self._screen = screen
        screen.heading("Queues")
        self.part = screen.part(screen.desk.reads.queues, self._draw)
        self.priorities = PrioritiesPart(screen, queue) if queue else None
        for act, handler in (
            ("pause", self._pause),
            ("resume", self._resume),
            ("limits", self._limits),
            ("deactivate", self._deactivate),
            ("activate", self._activate),
        ):
            screen.on(act, handler)

    async def open(self) -> None:
        """Read, then listen."""
        parts = [self.part] if self.priorities is None else [self.part, self.priorities.part]
        await self._screen.open(*parts)
        self._screen.listen(QUEUES, *parts)

    def _row(self, name: object) -> QueueRow:
        rows = self.part.data if isinstance(self.part.data, list) else []
        for row in rows:
            if isinstance(row, QueueRow) and row.queue.name == name:
                return row
        raise OperationError(f"the queue {name} is not shown any more")

    # ── looks ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _draw(self, rows: list[QueueRow]) -> list[Node]:
        if not rows:
            return [
                empty(
                    "No queue is known yet.",
                    "A queue appears with its first job, its first worker, or its first setting.",
                )
            ]
        headings = head(
            "Queue",
            th("Pending", kind="num"),
            th("Scheduled", kind="num"),
            th("Buffered", kind="num"),
            th("Running", kind="num"),
            th("Lag", kind="num", title="How long the oldest due job waits"),
            th("Pickup", kind="num", title="Mean and longest wait of the jobs that ended within the last 5 minutes"),
            th("Last minute", kind="num", title="Succeeded, stopped, retried"),
            th("Ever", kind="num.extra", title="Succeeded, stopped"),
            th("Workers", kind="num", title="Live children"),
            "Limits",
            th("Actions" if self._screen.user.may_change else "", kind="actions"),
        )
        return [table(headings, [self._line(row) for row in rows], "rows", "Queues")]

    def _line(self, row: QueueRow) -> Node:
        queue = row.queue
        waits = queue.pending > 0 and queue.live_workers == 0
        return el(
            "tr" if queue.live.active else "tr.off",
            td("Queue", link(self._jobs(queue.name), queue.name, class_="strong"), *self._marks(row), kind="wide"),
            td("Pending", self._counted(queue.pending, row), kind="num"),
            td("Scheduled", queue.scheduled or _none(), kind="num"),
            td("Buffered", queue.fetched or _none(), kind="num"),
            td(
                "Running",
                link(self._jobs(queue.name, JobStatus.PROCESSING), f"{queue.processing:,}")
                if queue.processing
                else _none(),
                kind="num",
            ),
            td(
                "Lag",
                el(f"span.lag.{row.lag}", words.duration(queue.oldest_due_ms), title=f"lag: {row.lag}"),
                link(
                    self._screen.url("/queues", {"queue": queue.name}),
                    "by priority",
                    class_="small block",
                    aria_label=f"Lag of {queue.name} by priority",
                ),
                kind="num",
            ),
            td("Pickup", f"{words.duration(row.lag_mean_ms)} · {words.duration(row.lag_max_ms)}", kind="num"),
            td("Last minute", self._minute(row), kind="num"),
            td(
                "Ever",
                f"{words.short(queue.succeeded_total)} · {words.short(queue.failed_total)}",
                kind="num.extra",
                title=f"{queue.succeeded_total:,} succeeded, {queue.failed_total:,} stopped, {queue.retried_total:,} retried",
            ),
            td(
                "Workers",
                el("span.lag.critical" if waits else "span", str(queue.live_workers)),
                kind="num",
                title="Jobs wait and no worker is live" if waits else None,
            ),
            td("Limits", *self._limits_of(row), kind="limits"),
            td("Actions", *self._buttons(row), kind="actions"),
            key=queue.name,
        )

    def _jobs(self, queue: str, status: JobStatus | None = None) -> str:
        return self._screen.url("/jobs", reads.to_query(Search(pillar=Pillar.HOT, queue=queue, status=status)))

    def _marks(self, row: QueueRow) -> list[Node]:
        live, marks = row.queue.live, list[Node]()
        if not live.active:
            marks.append(el("span.badge.mute", "deactivated"))
        if live.paused:
            marks.append(el("span.badge.warn", "paused"))
        if row.queue.updated_by:
            marks.append(el("small.faint.block", "set by ", row.queue.updated_by, " ", when(row.queue.updated_at)))
        return marks

    def _counted(self, value: int, row: QueueRow) -> Child:
        if row.counted_age_ms < 1_000 or value <= 10_000:
            return value or _none()
        return el("span", f"{value:,}", el("small.faint.block", f"{words.duration(row.counted_age_ms)} old"))

    def _minute(self, row: QueueRow) -> Node:
        return el(
            "span",
            el("span.good", f"{row.succeeded_1m:,}"),
            " · ",
            el("span.bad" if row.failed_1m else "span", f"{row.failed_1m:,}"),
            " · ",
            el("span.warn" if row.retried_1m else "span", f"{row.retried_1m:,}"),
            title=f"{row.succeeded_1m:,} succeeded, {row.failed_1m:,} stopped, {row.retried_1m:,} retried",
        )

    def _limits_of(self, row: QueueRow) -> list[Node]:
        live = row.queue.live
        pairs = [
            ("workers", row.max_workers, live.max_workers, "per child"),
            ("fleet", row.fleet_max_workers, live.fleet_max_workers, "over all workers"),
        ]
        shown: list[Node] = [
            _limit(name, f"{value:,}", over is not None, hint) for name, value, over, hint in pairs if value is not None
        ]
        for name, ms in (("timeout", live.execution_timeout_ms), ("zombie", live.zombie_timeout_ms)):
            if ms is not None:
                shown.append(_limit(name, words.duration(ms), True, "overridden"))
        return shown or [el("span.faint", NOTHING, title="This Deck's YAML does not name the queue")]

    def _buttons(self, row: QueueRow) -> list[Node]:
        if not self._screen.user.may_change:
            return []
        name, live = row.queue.name, row.queue.live
        turn = ("resume", "Resume") if live.paused else ("pause", "Pause")
        out = ("deactivate", "Deactivate") if live.active else ("activate", "Activate")
        return [
            button(act, text, value=name, aria_label=f"{text.rstrip('…')} {name}", kind="small")
            for act, text in (turn, ("limits", "Limits…"), out)
        ]

    # ── actions ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _pause(self, value: object) -> None:
        row = self._row(value)

        async def run(values: Values) -> str:
            await self._screen.desk.actions.pause(self._screen.user, row.queue.name, values["reason"])
            await self.part.refresh()
            return f"{row.queue.name} is paused: nothing new is claimed."

        told = f"Nothing new is claimed, buffered jobs go back; the {words.jobs(row.queue.processing)} that run finish."
        Question(self._screen, f"Pause {row.queue.name}?", run, body=[el("p", told)], verb="Pause")

    async def _resume(self, value: object) -> None:
        row = self._row(value)
        await self._screen.desk.actions.resume(self._screen.user, row.queue.name, None)
        await self.part.refresh()
        self._screen.tell(f"{row.queue.name} goes on.")

    def _deactivate(self, value: object) -> None:
        name = self._row(value).queue.name
        due = self._screen.desk.actions.queue_confirmation(Action.DEACTIVATE, name)

        async def run(values: Values) -> str:
            await self._screen.desk.actions.deactivate(self._screen.user, name, values["reason"], values["typed"])
            await self.part.refresh()
            return f"{name} is out of service."

        told = "It is taken out of service: nothing is claimed until somebody activates it. Jobs can still be enqueued; they wait."
        Question(
            self._screen,
            f"Deactivate {name}?",
            run,
            body=[el("p", told)],
            verb="Deactivate",
            danger=True,
            confirmation=due,
        )

    async def _activate(self, value: object) -> None:
        row = self._row(value)
        await self._screen.desk.actions.activate(self._screen.user, row.queue.name, None)
        await self.part.refresh()
        self._screen.tell(f"{row.queue.name} is in service again.")

    def _limits(self, value: object) -> None:
        row = self._row(value)
        name, now = row.queue.name, _overrides_now(row)

        async def run(values: Values) -> str:
            await self._screen.desk.actions.set_queue(
                self._screen.user, name, values["reason"], **_changed(values, now)
            )
            await self.part.refresh()
            return f"The limits of {name} are set; its workers follow within seconds."

        told = (
            "What is set here wins over the YAML of every worker, until it is emptied again. "
            "Lowering a limit stops nothing that runs."
        )
        fields = [_entry(key, text, hint, now[key]) for key, text, hint in _OVERRIDES]
        Question(self._screen, f"Limits of {name}", run, body=[el("p", told)], fields=fields, verb="Set")


def _entry(name: str, words_: str, hint: str, now: float | None) -> Node:
    return el(
        "label.field",
        el("span", words_, el("small.faint", f" {hint}; empty: as the YAML says")),
        el("input", name=name, type="number", min="1", inputmode="numeric", initial="" if now is None else f"{now:g}"),
    )


def _overrides_now(row: QueueRow) -> dict[str, float | None]:
    live = row.queue.live
    return {
        "max_workers": live.max_workers,
        "fleet_max_workers": live.fleet_max_workers,
        "execution_timeout": None if live.execution_timeout_ms is None else live.execution_timeout_ms / 1_000,
        "zombie_timeout": None if live.zombie_timeout_ms is None else live.zombie_timeout_ms / 1_000,
    }


def _changed(values: Values, now: dict[str, float | None]) -> dict[str, float | None]:
    changed: dict[str, float | None] = {}
    for name, words_, _ in _OVERRIDES:
        text = str(values.get(name) or "").strip()
        try:
            fresh = None if not text else float(text) if "timeout" in name else int(text)
        except ValueError:
            raise OperationError(f"{words_}: {text!r} is not a number") from None
        if fresh != now[name]:
            changed[name] = fresh
    if not changed:
        raise OperationError("nothing was changed here: the values are those that hold already")
    return changed


def _none() -> Node:
    return el("span.faint", "0")


def _limit(name: str, value: str, overridden: bool, hint: str) -> Node:
    told = f"{hint}; set by an operator" if overridden else f"{hint}; as the YAML says"
    return el("span.limit", el("span.faint", name), " ", el("b" if overridden else "span", value), title=told)
