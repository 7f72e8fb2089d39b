"""The `scenario` fixture, what of the suite exists on this machine, and the report of times from crash to rescue."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from tests.chaos.clock import LIBRARY
from tests.chaos.scenario import DEFAULT_JOBS, JOBS, REPORTS, Scenario, seed
from tests.support.lab import Lab
from tests.support.stores import VARIABLE

collect_ignore = [
    *([] if os.environ.get(VARIABLE) else ["test_wire.py"]),
    *([] if LIBRARY is not None else ["test_clock.py"]),
]
LONGEST = 900
"""Seconds one scenario of the short form may take on a loaded machine, its waits included; more jobs have more."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A module that names its STORE exists on that store alone. Scenarios take long, and longer with more jobs."""
    foreign = [item for item in items if _is_foreign(item)]
    items[:] = [item for item in items if item not in foreign]
    config.hook.pytest_deselected(items=foreign)
    jobs = int(os.environ.get(JOBS) or max(DEFAULT_JOBS.values()))
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "scenario" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(LONGEST + jobs / 5))
            item.add_marker(pytest.mark.processes)
            item.add_marker(pytest.mark.slow)


def _is_foreign(item: pytest.Item) -> bool:
    wanted = getattr(getattr(item, "module", None), "STORE", None)
    call = getattr(item, "callspec", None)
    return wanted is not None and call is not None and call.params.get("store_kind") != wanted


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the scenarios saw, and what this machine could not show."""
    if REPORTS:
        terminalreporter.section("chaos")
        for line in REPORTS:
            terminalreporter.line(line)
        if LIBRARY is None:
            terminalreporter.line("libfaketime is not installed (Debian: faketime): no clock was jumped")


@pytest.fixture
def scenario(
    request: pytest.FixtureRequest, tmp_path: Path, store: Store, store_options: DatabaseSettings, lab: Lab
) -> Iterator[Scenario]:
    """The tools of one test; everything it starts ends with it."""
    chosen = seed()
    print(f"CHOKAQ_CHAOS_SEED={chosen}")
    one = Scenario(request.node.originalname, tmp_path, store, store_options, lab, chosen)
    yield one
    one.close()
