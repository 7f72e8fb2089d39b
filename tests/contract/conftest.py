"""The contract suite: invariants after every test, and a loud word about what did not run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import stores
from tests.support.lab import Lab

_HERE = Path(__file__).parent
_unproven = 0


@pytest.fixture(autouse=True)
def _invariants(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that used a store: every job in exactly one pillar, no side row without its job."""
    lab: Lab | None = request.getfixturevalue("lab") if "store" in request.fixturenames else None
    yield
    if lab is not None:
        lab.check_invariants()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count what a live server would have added to this run."""
    global _unproven
    if stores.live_url() is None:
        _unproven = sum(
            1 for item in items if _HERE in item.path.parents and "store_kind" in getattr(item, "fixturenames", ())
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it loudly when the T-SQL was not executed."""
    if _unproven:
        terminalreporter.section("T-SQL NOT EXECUTED", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"{_unproven} live tests were not run: {stores.VARIABLE} is not set. Give a T-SQL server as "
            "mssql://user:password@host:port/database?encrypt=no to run the contract over it too."
        )
