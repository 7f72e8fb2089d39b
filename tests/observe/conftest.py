"""Logging as a new program has it, and back again."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog

from chokaq.observe import configure_logging, levels, log
from chokaq.observe.levels import verbose


@contextmanager
def fresh(*own: logging.Handler) -> Iterator[None]:
    """Root logging as a new program has it (pytest's own handlers are put in after the fixtures), and back again."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers[:] = own
    state, folding = vars(levels._state).copy(), log._Current.folding
    try:
        yield
    finally:
        vars(levels._state).update(state)
        log._Current.folding = folding
        verbose.debug = False
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


class Lines:
    """What was written since the last look."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def configure(self, level: str = "info", **options: Any) -> None:
        """JSON lines, for the standard library's loggers as well: pytest puts its handlers in after the fixtures."""
        logging.getLogger().handlers[:] = []
        configure_logging(level, "json", **options)

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._capfd.readouterr().err.splitlines()]


@pytest.fixture
def lines(capfd: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """JSON lines of a program whose logging is its own."""
    with fresh():
        yield Lines(capfd)
