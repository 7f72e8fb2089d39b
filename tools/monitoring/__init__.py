"""What is generated for monitoring: `python -m tools.monitoring` writes it anew."""

from collections.abc import Callable
from pathlib import Path

from tools.monitoring import board, operator

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
FILES: dict[str, Callable[[], str]] = {
    "grafana/chokaq.json": board.text,
    "kubernetes/components/monitoring/prometheusrule.yaml": operator.text,
}
"""File name below deploy/ → what it has to hold."""
