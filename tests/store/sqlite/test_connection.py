"""A session's connection: forks, foreign writers, closing."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.errors import SchemaMismatch, StoreRefused, StoreUnavailable
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import QueueChange
from chokaq.store.sqlite import SqliteSession, SqliteStore
from tests.support.jobs import new_job, new_jobs, worker_info
from tests.support.polling import wait_until

from .conftest import Program, lock_is_held, said

FORK_WITH_A_SESSION = """
import os, sys
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlite import SqliteStore
from tests.support.jobs import new_job
store = SqliteStore(DatabaseSettings(url=f"sqlite:///{sys.argv[1]}"))
session = store.session()
session.enqueue_jobs([new_job()])
child = os.fork()
session.enqueue_jobs([new_job()])
if child == 0:
    session.close()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
session.enqueue_jobs([new_job()])
print(session.list_queues()[0].pending, flush=True)
session.close()
"""

FORTY_WRITERS = """
import os, sys, traceback
from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlite import SqliteStore
from tests.support.jobs import new_jobs
start, started = os.pipe()
store = SqliteStore(DatabaseSettings(url=f"sqlite:///{sys.argv[1]}"))
children = []
for _ in range(40):
    if (child := os.fork()) == 0:
        os.close(started)
        os.read(start, 1)
        code = 1
        try:
            session = store.session()
            for _ in range(5):
                session.enqueue_jobs(new_jobs(2))
            session.close()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    children.append(child)
os.close(started)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
"""


def test_a_session_taken_over_a_fork_opens_its_own_connection_and_leaves_the_parents_alone(
    path: Path, beside: Callable[..., Program]
) -> None:
    """C22."""
    program = beside(FORK_WITH_A_SESSION, path)
    assert said(program) == "0"
    assert said(program) == "4"
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_forty_processes_write_at_once_from_a_cold_start_and_none_sees_a_lock(
    path: Path, embedded: SqliteStore, beside: Callable[..., Program]
) -> None:
    """The first of them creates the file, switches it to WAL and installs the schema."""
    program = beside(FORTY_WRITERS, path)
    assert said(program) == str([0] * 40), program.communicate()[1]
    session = embedded.session()
    assert session.list_queues()[0].pending == 400
    assert embedded.check_schema() == []
    session.close()


def test_a_writer_waits_for_a_foreign_transaction_that_knows_no_queue(path: Path, open_session: SqliteSession) -> None:
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    job = new_job()
    writer = threading.Thread(target=open_session.enqueue_jobs, args=([job],))
    writer.start()
    wait_until(lambda: lock_is_held(path), "the writer at the head of the queue")
    foreign.execute("COMMIT")
    writer.join(20)
    assert open_session.get_statuses([job.id]) == [JobStatus.PENDING]


def test_a_foreign_transaction_that_stays_makes_the_store_unavailable_not_locked(path: Path) -> None:
    session = SqliteStore(DatabaseSettings(url=f"sqlite:///{path}", command_timeout=0.05)).session()
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"jobs\.db"):
        session.enqueue_jobs([new_job()])
    foreign.execute("COMMIT")
    [answer] = session.enqueue_jobs([new_job()])
    assert answer.status is JobStatus.PENDING
    session.close()


def test_a_closed_session_says_so_and_closes_again_without_harm(open_session: SqliteSession) -> None:
    open_session.close()
    open_session.close()
    with pytest.raises(StoreUnavailable, match="the session is closed"):
        open_session.hot_queues()


def test_a_set_with_a_value_sqlite_cannot_hold_is_refused_whole(open_session: SqliteSession) -> None:
    good, bad = new_job(), new_job(priority=2**70)
    with pytest.raises(StoreRefused):
        open_session.enqueue_jobs([good, bad])
    assert open_session.get_statuses([good.id, bad.id]) == [None, None]
    assert open_session.enqueue_jobs([good])[0].created


def test_more_jobs_than_a_call_may_carry_are_refused(open_session: SqliteSession) -> None:
    with pytest.raises(StoreRefused, match="1001 jobs in one call"):
        open_session.enqueue_jobs(new_jobs(1001))


def test_an_idle_or_capped_or_paused_fetch_writes_nothing(path: Path, open_session: SqliteSession) -> None:
    worker = open_session.register_worker(worker_info())
    watcher = sqlite3.connect(path)

    def version() -> int:
        number: int = watcher.execute("PRAGMA data_version").fetchone()[0]
        return number

    before = version()
    open_session.fetch_jobs(worker, 1, 10)
    assert version() == before
    open_session.enqueue_jobs(new_jobs(3))
    before = version()
    open_session.fetch_jobs(worker, 1, 0)
    open_session.fetch_jobs(worker, 1, 10, fleet_cap=0)
    assert version() == before
    open_session.set_queue(worker.queue, QueueChange(paused=True), "ann")
    before = version()
    assert open_session.fetch_jobs(worker, 1, 10).next_due_ms == 0
    assert version() == before
    open_session.set_queue(worker.queue, QueueChange(paused=False), "ann")
    assert len(open_session.fetch_jobs(worker, 1, 10).jobs) == 3


def test_a_session_that_cannot_open_gives_everything_back(tmp_path: Path) -> None:
    file = tmp_path / "foreign.db"
    foreign = sqlite3.connect(file)
    foreign.execute("CREATE TABLE Something (Id INTEGER)")
    foreign.close()
    store = SqliteStore(DatabaseSettings(url=f"sqlite:///{file}"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(SchemaMismatch):
            store.session()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
