"""Panels as Grafana's classic dashboard model writes them; without a place and an id, which the board gives them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Panel = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, RED = "green", "yellow", "red"
Steps = Sequence[tuple[float | None, str]]
"""Values from which on a colour holds; None: from the beginning."""
Query = tuple[str, str]
"""An expression, and the name of its lines."""

LAG: Steps = ((None, GREEN), (5, YELLOW), (10, RED))
"""The limits of health and of the alert, in seconds."""
DEAD: Steps = ((None, GREEN), (0.001, YELLOW), (0.01, RED))
"""The objective and the alert of the DLQ, as a share."""


def stat(title: str, about: str, query: str, *, unit: str, steps: Steps = ((None, GREEN),), decimals: int = 0) -> Panel:
    """One number, coloured."""
    return _panel(
        "stat",
        title,
        about,
        [_target("A", query, "", instant=True)],
        defaults={"unit": unit, "decimals": decimals, "thresholds": _thresholds(steps), "noValue": "no data"},
        options={
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        },
    )


def lines(
    title: str,
    about: str,
    *queries: Query,
    unit: str,
    stacked: bool = False,
    steps: Steps = (),
    decimals: int | None = None,
) -> Panel:
    """Lines over time; `steps`: limits drawn as dashed lines."""
    custom: dict[str, Any] = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 40 if stacked else 10,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if steps else "off"},
    }
    defaults: dict[str, Any] = {
        "unit": unit,
        "min": 0,
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "thresholds": _thresholds(steps or ((None, GREEN),)),
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    return _panel(
        "timeseries",
        title,
        about,
        [_target(_letter(at), query, name) for at, (query, name) in enumerate(queries)],
        defaults=defaults,
        options={
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
                "calcs": ["lastNotNull", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    )


def heat(title: str, about: str, query: str, *, unit: str) -> Panel:
    """How many fell into each bucket of a histogram, over time."""
    target = _target("A", query, "{{le}}") | {"format": "heatmap"}
    return _panel(
        "heatmap",
        title,
        about,
        [target],
        defaults={},
        options={
            "calculate": False,
            "cellGap": 1,
            "color": {
                "mode": "scheme",
                "scheme": "Oranges",
                "steps": 64,
                "exponent": 0.5,
                "fill": "dark-orange",
                "reverse": False,
            },
            "yAxis": {"axisPlacement": "left", "unit": unit, "reverse": False},
            "rowsFrame": {"layout": "auto"},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": False},
            "showValue": "never",
            "filterValues": {"le": 1e-9},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
        },
    )


def table(
    title: str, about: str, columns: Mapping[str, str], *, by: Sequence[str], units: Mapping[str, str] | None = None
) -> Panel:
    """One row for each set of the labels `by`; `columns`: heading → expression; `units`: heading → unit."""
    targets = [
        _target(_letter(at), query, "", instant=True) | {"format": "table"} for at, query in enumerate(columns.values())
    ]
    names = {f"Value #{_letter(at)}": heading for at, heading in enumerate(columns)}
    if len(names) == 1:
        names["Value"] = names.pop("Value #A")
    order = {name: at for at, name in enumerate((*by, *names))}
    overrides = [
        {"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": unit}]}
        for heading, unit in (units or {}).items()
    ]
    made = _panel(
        "table",
        title,
        about,
        targets,
        defaults={"custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}},
        options={
            "showHeader": True,
            "cellHeight": "sm",
            "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""},
        },
    )
    made["fieldConfig"]["overrides"] = overrides
    made["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": names}},
    ]
    return made


def _panel(kind: str, title: str, about: str, targets: Iterable[Panel], *, defaults: Panel, options: Panel) -> Panel:
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": list(targets),
    }


def _target(letter: str, query: str, name: str, *, instant: bool = False) -> Panel:
    made: Panel = {
        "refId": letter,
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query,
        "legendFormat": name or "__auto",
    }
    return made | ({"instant": True, "range": False} if instant else {"instant": False, "range": True})


def _thresholds(steps: Steps) -> Panel:
    return {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps]}


def _letter(at: int) -> str:
    return chr(ord("A") + at)
