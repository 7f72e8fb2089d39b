"""The charts: throughput, failures by reason, lag, running against capacity, over the last hour or day."""

from collections.abc import Sequence
from typing import Any, Literal

from nicegui import ui

from chokaq.deck.pages.fragment import Fragment
from chokaq.deck.pages.nodes import Node, button, el
from chokaq.deck.pages.screen import Screen
from chokaq.deck.shown import Charts, Point
from chokaq.deck.theme import SERIES
from chokaq.operations.errors import OperationError
from chokaq.store.errors import StoreError

Span = Literal["hour", "day"]
_NAMES = ("Throughput", "Stopped, by reason", "Lag, 95th percentile", "Running against capacity")
_UNITS = ("jobs per second", "jobs", "from due to start", "handlers at work")
_REASONS = ("#cf4a3f", "#d08a1d", "#8b6fc7", "#3d74d6", "#3f8f5f", "#8a94a6")
_MUTED, _LINE = "chokaqColour('--mute')", "chokaqColour('--line')"


class ChartRow:
    """Four charts and the switch between hour and day. They are read again when something ended, each at most once a step."""

    def __init__(self, screen: Screen, span: Span, queue: str | None = None) -> None:
        """`queue`: of this one only."""
        self._screen, self._span, self._queue = screen, span, queue
        self._seen: Charts | None = None
        with screen.main:
            self._head = Fragment(screen.act).classes("part")
            with ui.element("div").classes("charts"):
                self._charts = [self._box(name, unit) for name, unit in zip(_NAMES, _UNITS, strict=True)]
        screen.on("span", self._switch)
        ui.on("theme", self._recolour)
        self._draw_head()

    async def refresh(self) -> None:
        """Read again; the last charts stay while the database is away."""
        try:
            seen = await self._screen.desk.reads.charts(self._span, self._queue)
        except (StoreError, OperationError):
            return
        if seen == self._seen:
            return
        self._seen = seen
        drawn = (_throughput(seen), _failures(seen), _lag(seen), _running(seen))
        for chart, options in zip(self._charts, drawn, strict=True):
            chart.options.clear()
            chart.options.update(options)
            chart.update()

    async def _switch(self, value: object) -> None:
        self._span = "day" if value == "day" else "hour"
        ui.navigate.history.replace(self._screen.url("/", {"span": "day"} if self._span == "day" else None))
        self._draw_head()
        await self.refresh()

    def _recolour(self) -> None:
        for chart in self._charts:
            chart.update()

    def _draw_head(self) -> None:
        def choice(span: Span, text: str) -> Node:
            return button("span", text, value=span, aria_pressed="true" if self._span == span else "false")

        self._head.show(
            el("div.head.sub", el("h2", "Over time"), el("div.segments", choice("hour", "Hour"), choice("day", "Day")))
        )

    def _box(self, name: str, unit: str) -> Any:
        with ui.element("section").classes("card chart").props(f'aria-label="{name}"'):
            Fragment(self._screen.act, [el("div.card-head", el("h2", name), el("span.faint", unit))])
            return ui.echart(base_options([]))


def _whole(seen: Charts) -> list[Point]:
    """The steps that are over: the last one has only begun."""
    return seen.points[:-1]


def _ms(point: Point) -> int:
    return round(point.start.timestamp() * 1_000)


def base_options(
    series: list[dict[str, Any]], *, legend: bool = False, axis: str | None = None, tooltip: str | None = None
) -> dict[str, Any]:
    """A chart over time in The Deck's colours. `axis`, `tooltip`: how values are said, as JavaScript functions."""
    value_axis: dict[str, Any] = {
        "type": "value",
        "minInterval": 0,
        "splitNumber": 3,
        "axisLabel": {":color": _MUTED, "fontSize": 11},
        "splitLine": {"lineStyle": {":color": _LINE}},
    }
    if axis:
        value_axis["axisLabel"][":formatter"] = axis
    shown: dict[str, Any] = {
        "trigger": "axis",
        "confine": True,
        ":backgroundColor": "chokaqColour('--card')",
        ":borderColor": _LINE,
        "textStyle": {":color": "chokaqColour('--ink')", "fontSize": 12},
        "padding": [6, 10],
    }
    if tooltip:
        shown[":valueFormatter"] = tooltip
    return {
        "animation": False,
        "grid": {"left": 46, "right": 14, "top": 30 if legend else 12, "bottom": 24},
        "legend": {
            "show": legend,
            "type": "scroll",
            "top": 0,
            "left": 40,
            "itemWidth": 10,
            "itemHeight": 8,
            "icon": "rect",
            "textStyle": {":color": _MUTED, "fontSize": 11},
            "pageIconSize": 9,
        },
        "tooltip": shown,
        "xAxis": {
            "type": "time",
            "axisLabel": {":color": _MUTED, "fontSize": 11, "hideOverlap": True},
            "axisLine": {"lineStyle": {":color": _LINE}},
            "axisTick": {"show": False},
            "splitLine": {"show": False},
        },
        "yAxis": value_axis,
        "series": series,
    }


def line_series(name: str, colour: str, data: Sequence[Sequence[float | None]], **more: Any) -> dict[str, Any]:
    """A line with its area; `data`: [milliseconds since 1970, value] each."""
    return {
        "type": "line",
        "name": name,
        "showSymbol": False,
        "step": False,
        "lineStyle": {"width": 1.6, "color": colour},
        "itemStyle": {"color": colour},
        "areaStyle": {"color": colour, "opacity": 0.12},
        "data": data,
        **more,
    }


def _throughput(seen: Charts) -> dict[str, Any]:
    done = [[_ms(point), round(point.succeeded / seen.step_seconds, 2)] for point in _whole(seen)]
    again = [[_ms(point), round(point.retried / seen.step_seconds, 2)] for point in _whole(seen)]
    series = [line_series("succeeded", SERIES["good"], done)]
    series.append(line_series("retried", SERIES["warn"], again, areaStyle=None))
    return base_options(series, legend=True, tooltip="v => v + ' /s'")


def _failures(seen: Charts) -> dict[str, Any]:
    totals: dict[str, int] = {}
    for point in seen.points:
        for reason, count in point.failed.items():
            totals[reason] = totals.get(reason, 0) + count
    reasons = sorted(totals, key=lambda reason: -totals[reason])
    series = [
        {
            "type": "bar",
            "stack": "failed",
            "name": reason,
            "itemStyle": {"color": _REASONS[at % len(_REASONS)]},
            "barMaxWidth": 12,
            "data": [[_ms(point), point.failed.get(reason, 0)] for point in seen.points],
        }
        for at, reason in enumerate(reasons)
    ]
    nothing = {"type": "bar", "name": "stopped", "data": [[_ms(point), 0] for point in seen.points]}
    options = base_options(series or [nothing], legend=bool(series))
    options["yAxis"]["minInterval"] = 1
    return options


def _lag(seen: Charts) -> dict[str, Any]:
    data = [[_ms(point), point.lag_p95_ms] for point in _whole(seen)]
    return base_options(
        [line_series("95th percentile", SERIES["run"], data, connectNulls=False)],
        axis="v => chokaqSpan(v)",
        tooltip="v => v == null ? 'none ended' : 'at most ' + chokaqSpan(v)",
    )


def _running(seen: Charts) -> dict[str, Any]:
    running = [[_ms(point), round(point.running_mean, 2)] for point in _whole(seen)]
    series = [line_series("running", SERIES["run"], running)]
    if seen.capacity:
        ends = [[_ms(point), seen.capacity] for point in _whole(seen)]
        series.append(
            line_series(
                "capacity now",
                SERIES["mute"],
                ends,
                areaStyle=None,
                lineStyle={"width": 1, "type": "dashed", "color": SERIES["mute"]},
            )
        )
    return base_options(series, legend=True)
