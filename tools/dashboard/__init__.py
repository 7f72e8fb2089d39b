"""Grafana's dashboard, deploy/grafana/chokaq.json. `python -m tools.dashboard` writes it anew."""

import json
from pathlib import Path

from tools.dashboard.board import dashboard

FILE = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "chokaq.json"


def text() -> str:
    """What the file has to hold."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"
