"""Fixtures and profiles every part may use.

* `store_kind`: the store under test; a test that asks for it (or for anything below) runs once per available store.
* `store_options`: its DatabaseSettings (a fresh file in `tmp_path`, or the live server).
* `store`: the store, schema applied, tables empty.
* `session`: one open session.   `sessions()`: further ones, each its own connection.
* `databases`: two stores by name (main, archive), as settings, both prepared: two files, or two schemas of the live server.
* `lab`: raw SQL behind the store's back: ageing rows, looking, breaking a step (tests/support/lab.py).

Hypothesis profiles: `dev` (default) and `ci` (derandomised, no example database; chosen when CI is set, or by
HYPOTHESIS_PROFILE).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from tests.contract.proof import Proof
from tests.support import stores
from tests.support.lab import Lab
from tests.support.stores import Sessions

settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, database=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """A run with a live server may prove the T-SQL."""
    if stores.live_url() is not None:
        config.pluginmanager.register(Proof(), "tsql-proof")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run whatever touches a store once per store at hand; nothing is emitted for a store that is not."""
    if "store_kind" in metafunc.fixturenames:
        metafunc.parametrize("store_kind", stores.available(), scope="session")


def pytest_sessionfinish() -> None:
    """Close the connections that tests shared."""
    stores.close_idle()


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    """No test leaves a CHOKAQ_ variable behind: the programs that later tests start would obey it."""
    before = _own_variables()
    yield
    assert _own_variables() == before


def _own_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("CHOKAQ_")}


@pytest.fixture
def store_options(store_kind: str, tmp_path: Path) -> DatabaseSettings:
    """How to reach the store under test."""
    return stores.options(store_kind, tmp_path)


@pytest.fixture
def store(store_options: DatabaseSettings) -> Store:
    """The store under test, schema applied, empty."""
    return stores.prepare(store_options)


@pytest.fixture
def databases(store_kind: str, tmp_path: Path) -> dict[str, DatabaseSettings]:
    """Two databases with their schemas applied, empty."""
    found = {
        "main": stores.options(store_kind, tmp_path),
        "archive": stores.options(store_kind, tmp_path, stores.SECOND_SCHEMA),
    }
    for options in found.values():
        stores.prepare(options)
    return found


@pytest.fixture
def sessions(store: Store, store_options: DatabaseSettings) -> Iterator[Sessions]:
    """Call it for another session; all are closed at the end."""
    yield from stores.opened(store, store_options)


@pytest.fixture
def session(sessions: Sessions) -> Session:
    """One session of the store under test."""
    return sessions()


@pytest.fixture
def lab(store: Store, store_options: DatabaseSettings) -> Iterator[Lab]:
    """Raw SQL behind the store's back."""
    lab = stores.laboratory(store_options)
    yield lab
    lab.close()
