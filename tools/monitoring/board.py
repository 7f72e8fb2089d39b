"""Grafana's dashboard: its variables, and its rows laid out on Grafana's grid of 24 columns."""

import json
from typing import Any

from tools.monitoring.panels import SOURCE, Panel
from tools.monitoring.rows import ROWS

WIDTH = 24
SCHEMA = 39
"""Grafana 10.4 and 11; later versions bring it up to theirs when it is imported."""


def text() -> str:
    """What the file has to hold."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


def dashboard() -> dict[str, Any]:
    """As Grafana imports it."""
    return {
        "uid": "chokaq",
        "title": "chokaq",
        "description": "Background jobs: queues, failures, workers and the database they share.",
        "tags": ["chokaq", "jobs"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "liveNow": False,
        "fiscalYearStartMonth": 0,
        "weekStart": "",
        "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "timepicker": {"refresh_intervals": ["10s", "30s", "1m", "5m", "15m"]},
        "links": [],
        "annotations": {"list": [_alerts()]},
        "templating": {"list": _variables()},
        "panels": _placed(),
    }


def _alerts() -> dict[str, Any]:
    return {
        "name": "Critical alerts",
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": "red",
        "expr": 'ALERTS{alertname=~"Chokaq.*", alertstate="firing", severity="critical", job=~"$job|"}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{queue}} {{instance}}",
    }


def _variables() -> list[dict[str, Any]]:
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
    }
    return [
        source,
        _labels("namespace", "Namespace", "label_values(chokaq_build_info, namespace)"),
        _labels("job", "Job", 'label_values(chokaq_build_info{namespace=~"$namespace"}, job)'),
        _labels("queue", "Queue", 'label_values(chokaq_children{namespace=~"$namespace", job=~"$job"}, queue)'),
    ]


def _labels(name: str, label: str, query: str) -> dict[str, Any]:
    """All values unless some are chosen. `.*` also matches where the label is missing, as `namespace` is outside of Kubernetes."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "StandardVariableQuery"},
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "includeAll": True,
        "multi": True,
        "options": [],
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
    }


def _placed() -> list[Panel]:
    """Each row's panels from left to right, as many beside each other as fit."""
    placed: list[Panel] = []
    top = 0
    for title, panels in ROWS:
        placed.append(
            {
                "id": len(placed) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top},
                "panels": [],
            }
        )
        top += 1
        left = tallest = 0
        for width, height, panel in panels:
            if left + width > WIDTH:
                top, left, tallest = top + tallest, 0, 0
            placed.append({"id": len(placed) + 1, "gridPos": {"h": height, "w": width, "x": left, "y": top}} | panel)
            left, tallest = left + width, max(tallest, height)
        top += tallest
    return placed
