"""The history of one job type's circuits: the last day as a chart, the last week as a list."""

from datetime import datetime
from typing import Any

from nicegui import ui

from chokaq.deck.pages import words
from chokaq.deck.pages.charts import base_options, line_series
from chokaq.deck.pages.fragment import Fragment
from chokaq.deck.pages.nodes import Node, button, dash, el, link, when
from chokaq.deck.pages.pager import Pager, older_button
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td, th
from chokaq.deck.shown import CircuitTimeline
from chokaq.deck.theme import SERIES
from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.operations.circuit_history import CircuitHistory, event_words
from chokaq.operations.errors import OperationError
from chokaq.store.circuits import CircuitEvent
from chokaq.store.errors import StoreError

PAGE = 50
_TONES = {CircuitState.OPEN: "bad", CircuitState.HALF_OPEN: "warn", CircuitState.CLOSED: "good", None: "mute"}


class CircuitHistoryPart:
    """Below the table of all types. What is shown stands in the address: `type`, `tries`, `after`."""

    def __init__(self, screen: Screen, query: dict[str, str]) -> None:
        """`query`: the parameters of the address, with a type."""
        self._screen = screen
        self.type_key = query["type"].strip().lower()
        self._tries = bool(query.get("tries"))
        self._pager = Pager(query.get("after"))
        self._seen: CircuitTimeline | None = None
        self._head = screen.place()
        with screen.main, ui.element("section").classes("card chart day").props('aria-label="The last 24 hours"'):
            self._told = Fragment(screen.act)
            self._chart = ui.echart(_options(None))
        self.part = screen.part(self._read, self._draw)
        for act, handler in (("tries", self._switch), ("older", self._older), ("newer", self._newer)):
            screen.on(act, handler)
        ui.on("theme", self._chart.update)
        self._draw_head()
        self._tell_cut(cut=False)

    async def refresh(self) -> None:
        """Read the chart again; the last one stays while the database is away."""
        try:
            seen = await self._screen.desk.reads.circuit_timeline(self.type_key)
        except (StoreError, OperationError):
            return
        if self._seen is not None and (seen.steps[1:], seen.orders) == (self._seen.steps[1:], self._seen.orders):
            return
        self._seen = seen
        self._tell_cut(cut=seen.cut)
        self._chart.options.clear()
        self._chart.options.update(_options(seen))
        self._chart.update()

    async def _read(self) -> CircuitHistory:
        reads = self._screen.desk.reads
        return await reads.circuit_events(self.type_key, PAGE, self._pager.after, tries=self._tries)

    # ── looks ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _draw_head(self) -> None:
        def choice(value: str, text: str) -> Node:
            chosen = bool(value) == self._tries
            return button("tries", text, value=value, aria_pressed="true" if chosen else "false")

        self._head.show(
            el(
                "div.head.sub",
                el("h2", f"History of {self.type_key}"),
                el(
                    "div.segments",
                    choice("", "Opened and closed"),
                    choice("1", "Every try"),
                    role="group",
                    aria_label="Events",
                ),
                link(self._screen.url("/audit", {"target": self.type_key}), "Its orders in the audit log"),
                link(self._screen.url("/circuits"), "Hide"),
            )
        )

    def _tell_cut(self, *, cut: bool) -> None:
        beside = "as far back as the newest 1,000 events reach" if cut else "workers whose circuit was not closed"
        self._told.show(el("div.card-head", el("h2", "The last 24 hours"), el("span.faint", beside)))

    def _draw(self, page: CircuitHistory) -> list[Node]:
        if not page.events and not self._pager.turned:
            return [
                empty(
                    "Nothing happened to it within the last 7 days.",
                    "No worker's circuit of this type was opened or closed, and nobody ordered anything. Is the key right?",
                )
            ]
        headings = head(
            "When", "What", "Where", "Queue", th("Failures in a row", kind="num"), "Last error, or why"
        )  # fmt: skip
        return [
            table(headings, [_row(event) for event in page.events], "rows", f"History of {self.type_key}"),
            el(
                "div.pager",
                self._pager.newer_button(),
                el("span", f"{len(page.events):,} events"),
                older_button(page.after),
            ),
        ]

    # ── what the viewer does ──────────────────────────────────────────────────────────────────────────────────────────
    async def _switch(self, value: object) -> None:
        self._tries = bool(value)
        self._pager.first()
        await self._go()

    async def _older(self, _: object) -> None:
        if isinstance(self.part.data, CircuitHistory) and self._pager.older(self.part.data.after):
            await self._go()

    async def _newer(self, _: object) -> None:
        if self._pager.newer():
            await self._go()

    async def _go(self) -> None:
        query = {"type": self.type_key, "tries": "1" if self._tries else "", "after": self._pager.after or ""}
        with self._screen.overlay:
            address = self._screen.url("/circuits", {name: text for name, text in query.items() if text})
            ui.navigate.history.push(address)
        self._draw_head()
        await self.part.refresh()


def _row(event: CircuitEvent) -> Node:
    ordered = event.forced is not None
    where = (
        el("span", "by ", el("b", event.actor or ""))
        if ordered
        else el("span", event.host or "", el("small.faint.block.id", event.worker_id or ""))
    )
    tone = "warn" if ordered and event.forced is not Forced.NO else _TONES[event.after]
    return el(
        "tr",
        td("When", when(event.at, "clock"), el("small.faint.block", when(event.at)), kind="nowrap"),
        td("What", el(f"span.badge.{tone}", event_words(event)), kind="nowrap"),
        td("Where", where),
        td("Queue", event.queue or dash()),
        td("Failures in a row", dash() if event.failures is None else event.failures, kind="num"),
        td("Last error, or why", event.reason or words.error_name(event.last_error) or dash(), title=event.last_error),
        key=event.id,
    )


def _options(seen: CircuitTimeline | None) -> dict[str, Any]:
    """The chart; None: an empty one, until it is read."""
    if seen is None:
        return base_options([])
    end = _ms(seen.end)
    points = [[_ms(step.at), step.workers] for step in seen.steps]
    series = line_series("not closed", SERIES["bad"], [*points, [end, seen.steps[-1].workers]], step="end")
    series["markLine"] = {
        "symbol": "none",
        "silent": True,
        "lineStyle": {"color": SERIES["warn"], "type": "dashed"},
        "label": {":color": "chokaqColour('--mute')", "fontSize": 11, "position": "end"},
        "data": [{"xAxis": _ms(order.at), "label": {"formatter": _order(order.forced)}} for order in seen.orders[-20:]],
    }
    options = base_options([series], tooltip="v => v + (v == 1 ? ' worker' : ' workers')")
    options["grid"] |= {"top": 26}
    options["xAxis"] |= {"min": _ms(seen.start), "max": end}
    options["yAxis"] |= {"minInterval": 1, "min": 0}
    return options


def _order(forced: Forced) -> str:
    return "cleared" if forced is Forced.NO else f"forced {forced.name.lower()}"


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1_000)
