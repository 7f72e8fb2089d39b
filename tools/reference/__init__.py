"""The pages of docs/ that are written by the code they describe. `python -m tools.reference` writes them anew."""

from collections.abc import Callable
from pathlib import Path

from tools.reference import commands, procedures, settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": settings.page,
    "commands.md": commands.page,
    "tsql.md": procedures.page,
}
"""File name below docs/ → what it has to hold."""
