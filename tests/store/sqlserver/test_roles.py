"""What a login may do that has chokaq_client and nothing else. Live server only.

The engine at hand has no ownership chaining for procedures: the login gets the table rights there that SQL Server does not ask for.
What it may execute, and whose jobs it is shown, is decided by the grants and the procedures all the same.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.errors import StoreRefused
from chokaq.store.open import open_store
from chokaq.store.protocol import Session
from tests.support import mssql, stores
from tests.support.jobs import new_job, worker_info
from tests.support.lab import Lab
from tests.support.logins import Login

LOGIN = "chokaq_test_shop"


@pytest.fixture(scope="module")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A connection that owns the database, with the schema applied."""
    settings = stores.options(stores.SQLSERVER, Path(tmp_path_factory.mktemp("unused")))
    stores.prepare(settings)
    connection = mssql.connect(settings.url)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def login(administrator: Any) -> Iterator[Login]:
    """A login that is a member of chokaq_client."""
    login = Login(administrator, LOGIN, "client")
    login.allow_tables()
    yield login
    login.drop()


@pytest.fixture
def client(login: Login, tmp_path: Path) -> Iterator[Session]:
    """A session of that login."""
    settings = stores.options(stores.SQLSERVER, tmp_path)
    session = open_store(msgspec.structs.replace(settings, url=login.url)).session()
    yield session
    session.close()


@pytest.fixture
def owner(administrator: Any, tmp_path: Path) -> Iterator[Session]:
    """A session of the database's owner."""
    session = stores.prepare(stores.options(stores.SQLSERVER, tmp_path)).session()
    yield session
    session.close()


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """The back door."""
    return stores.laboratory(stores.options(stores.SQLSERVER, tmp_path))


def test_a_client_enqueues_reads_and_cancels_its_own_jobs(owner: Session, client: Session, lab: Lab) -> None:
    job = new_job()
    assert client.enqueue_jobs([job])[0].created
    assert lab.row(job.id)["OwnerLogin"] == LOGIN

    view = client.get_job(job.id)
    assert view is not None
    assert client.get_statuses([job.id]) == [JobStatus.PENDING]
    assert client.cancel_jobs([job.id], "shop")[0].result == "cancelled"
    assert client.get_statuses([job.id]) == [JobStatus.CANCELLED]


def test_a_client_is_told_nothing_of_other_peoples_jobs(owner: Session, client: Session) -> None:
    job = new_job()
    owner.enqueue_jobs([job])

    assert client.get_job(job.id) is None
    assert client.get_statuses([job.id]) == [None]
    assert client.cancel_jobs([job.id], "shop")[0].result == "unknown"
    assert owner.get_statuses([job.id]) == [JobStatus.PENDING]


def test_a_client_may_not_work_nor_operate(owner: Session, client: Session) -> None:
    for forbidden in (
        lambda: client.register_worker(worker_info()),
        client.list_queues,
        client.hot_queues,
        client.roll_up,
        client.list_audit,
    ):
        with pytest.raises(StoreRefused, match="grant the login one of chokaq's roles"):
            forbidden()
