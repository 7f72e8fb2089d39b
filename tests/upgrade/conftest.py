"""What an upgrade is tested from, and a loud word when the history that holds it is not there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import mssql, stores
from tests.upgrade.deployment import Deployment
from tests.upgrade.releases import Release, is_here, releases

MISSING = [release for release in releases() if not is_here(release)]
LONGEST = 900
"""Seconds one test may take on a loaded machine."""
SCHEMA = "chokaq_upgrade"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever starts programs takes long."""
    for item in items:
        if "deployment" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(LONGEST))
            item.add_marker(pytest.mark.processes)
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it loudly when no old program could be had."""
    if MISSING:
        terminalreporter.section("UPGRADES NOT TESTED", sep="!", red=True, bold=True)
        for release in MISSING:
            terminalreporter.line(
                f"Release {release.version} ({release.commit}) is not in this repository's history (a shallow clone, or no clone "
                "at all): deploys from it were not tested. Get it with `git fetch --unshallow`, and run tests/upgrade again."
            )


@pytest.fixture(params=releases(), ids=lambda release: release.version, scope="session")
def release(request: pytest.FixtureRequest) -> Release:
    """Every released version."""
    found: Release = request.param
    if found in MISSING:
        pytest.skip(f"UPGRADE NOT TESTED: {found.commit} is not in this repository's history")
    return found


@pytest.fixture
def deployment(store_kind: str, release: Release, tmp_path: Path) -> Iterator[Deployment]:
    """An empty place; everything that is started on it ends with the test."""
    settings = stores.options(store_kind, tmp_path, SCHEMA)
    if store_kind == stores.SQLSERVER:
        mssql.create_database(settings.url)
    lab = stores.laboratory(settings)
    lab.drop_schema()
    one = Deployment(tmp_path, settings, lab, release)
    try:
        yield one
    finally:
        one.destroy()
        lab.drop_schema()
        lab.close()
