"""`Store.enqueue_in`: on the caller's own cursor, inside its transaction (C46)."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chokaq.lifecycle.states import JobStatus, KeyScope
from chokaq.store.errors import StoreError
from chokaq.store.protocol import Session, Store
from chokaq.store.records import JobFilter
from tests.support.holder import Holder
from tests.support.jobs import new_job, new_jobs
from tests.support.lab import Lab

Open = Callable[[], Any]


@pytest.fixture
def caller(lab: Lab) -> Iterator[Open]:
    """Opens connections as an application would, with a transaction of its own; all are closed at the end."""
    given = []

    def connect() -> Any:
        given.append(lab.caller())
        return given[-1]

    yield connect
    for connection in given:
        connection.close()


@pytest.fixture
def orders(lab: Lab) -> Iterator[str]:
    """A table of the application's own."""
    lab.execute("CREATE TABLE {Orders} (Number int NOT NULL)")
    yield lab.table("Orders")
    lab.execute("DROP TABLE {Orders}")


def test_the_job_is_visible_only_after_the_callers_commit(
    store: Store, session: Session, lab: Lab, caller: Open, orders: str
) -> None:
    """C46: elsewhere a job is visible before the caller's commit."""
    connection = caller()
    cursor = connection.cursor()
    cursor.execute(f"INSERT INTO {orders} (Number) VALUES (7)")
    job = new_job(payload='{"order":7}', tags="a'b\n😀")

    [answer] = store.enqueue_in(cursor, [job])

    assert (answer.id, answer.created, answer.status) == (job.id, True, JobStatus.PENDING)
    assert session.list_jobs(JobFilter()).jobs == []
    assert session.list_queues() == []
    connection.commit()
    view = session.get_job(job.id)
    assert view is not None
    assert (view.payload, view.tags) == ('{"order":7}', "a'b\n😀")
    assert lab.query("SELECT Number FROM {Orders}") == [{"Number": 7}]
    assert [found.id for found in Holder(session).fetch(5).jobs] == [job.id]


def test_the_job_is_gone_with_the_callers_rollback(
    store: Store, session: Session, lab: Lab, caller: Open, orders: str
) -> None:
    connection = caller()
    cursor = connection.cursor()
    cursor.execute(f"INSERT INTO {orders} (Number) VALUES (7)")
    job = new_job(idempotency_key="k", key_scope=KeyScope.RETAINED)
    store.enqueue_in(cursor, [job])

    connection.rollback()

    assert session.get_job(job.id) is None
    assert lab.rows("JobKeys") == lab.query("SELECT Number FROM {Orders}") == []
    assert session.enqueue_jobs([new_job(idempotency_key="k")])[0].created


def test_it_may_be_the_first_statement_of_the_transaction(store: Store, session: Session, caller: Open) -> None:
    connection = caller()
    job = new_job()
    store.enqueue_in(connection.cursor(), [job])
    assert session.list_jobs(JobFilter()).jobs == []

    connection.commit()

    assert session.get_statuses([job.id]) == [JobStatus.PENDING]


def test_an_autocommit_cursor_is_refused_with_the_way_out(store: Store, lab: Lab) -> None:
    connection = lab.caller(autocommit=True)
    try:
        with pytest.raises(StoreError, match=r"(?i)autocommit|transaction"):
            store.enqueue_in(connection.cursor(), [new_job()])
    finally:
        connection.close()
    assert lab.count("JobsHot") == 0


def test_several_calls_and_many_jobs_share_one_transaction(
    store: Store, session: Session, lab: Lab, caller: Open
) -> None:
    connection = caller()
    cursor = connection.cursor()
    jobs = new_jobs(500)

    first = store.enqueue_in(cursor, jobs[:300])
    second = store.enqueue_in(cursor, jobs[300:])

    assert [answer.id for answer in first + second] == [job.id for job in jobs]
    assert store.enqueue_in(cursor, []) == []
    connection.commit()
    assert lab.count("JobsHot") == 500


def test_a_repeat_in_the_same_transaction_finds_its_own_job(store: Store, lab: Lab, caller: Open) -> None:
    connection = caller()
    cursor = connection.cursor()
    job = new_job()

    answers = store.enqueue_in(cursor, [job]) + store.enqueue_in(cursor, [job])

    connection.commit()
    assert answers[0] == answers[1]
    assert lab.count("JobsHot") == 1


@pytest.mark.parametrize("scope", list(KeyScope))
def test_a_duplicate_key_never_dooms_the_callers_transaction(
    store: Store, session: Session, lab: Lab, caller: Open, orders: str, scope: KeyScope
) -> None:
    """The caller's own work commits whether its job was new or not."""
    window = 3_600_000 if scope is KeyScope.WINDOW else None
    fields = {"idempotency_key": "k", "key_scope": scope, "key_window_ms": window}
    first = new_job(**fields, payload="1")
    session.enqueue_jobs([first])
    connection = caller()
    cursor = connection.cursor()
    cursor.execute(f"INSERT INTO {orders} (Number) VALUES (1)")
    fresh = new_job()

    answers = store.enqueue_in(cursor, [new_job(**fields, payload="2"), fresh, new_job(**fields, payload="1")])

    assert [(answer.id, answer.created, answer.payload_differs) for answer in answers] == [
        (first.id, False, True), (fresh.id, True, False), (first.id, False, False)
    ]  # fmt: skip
    cursor.execute(f"INSERT INTO {orders} (Number) VALUES (2)")
    connection.commit()
    assert lab.count("Orders") == 2
    assert lab.count("JobsHot") == 2


def test_a_refused_job_leaves_the_callers_transaction_usable(store: Store, lab: Lab, caller: Open, orders: str) -> None:
    connection = caller()
    cursor = connection.cursor()
    cursor.execute(f"INSERT INTO {orders} (Number) VALUES (1)")

    with pytest.raises(StoreError):
        store.enqueue_in(cursor, [new_job(), new_job(queue="очередь")])

    cursor.execute(f"INSERT INTO {orders} (Number) VALUES (2)")
    store.enqueue_in(cursor, [new_job()])
    connection.commit()
    assert lab.count("Orders") == 2
    assert lab.count("JobsHot") == 1


def test_two_callers_with_one_key_become_one_job(store: Store, lab: Lab, caller: Open) -> None:
    """Design §3.6: the second waits for the first's commit and gets its id."""
    first, second = caller(), caller()
    job = new_job(idempotency_key="k")
    [mine] = store.enqueue_in(first.cursor(), [job])
    answers = []
    asked = threading.Event()

    def other() -> None:
        asked.set()
        answers.extend(store.enqueue_in(second.cursor(), [new_job(idempotency_key="k")]))
        second.commit()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    assert asked.wait(10)
    first.commit()
    thread.join(30)

    assert not thread.is_alive()
    assert mine.created
    assert [(answer.id, answer.created) for answer in answers] == [(job.id, False)]
    assert lab.count("JobsHot") == 1


def test_a_key_whose_first_caller_rolls_back_goes_to_the_second(store: Store, lab: Lab, caller: Open) -> None:
    first, second = caller(), caller()
    store.enqueue_in(first.cursor(), [new_job(idempotency_key="k", key_scope=KeyScope.RETAINED)])
    job = new_job(idempotency_key="k", key_scope=KeyScope.RETAINED)
    answers = []
    asked = threading.Event()

    def other() -> None:
        asked.set()
        answers.extend(store.enqueue_in(second.cursor(), [job]))
        second.commit()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    assert asked.wait(10)
    first.rollback()
    thread.join(30)

    assert [(answer.id, answer.created) for answer in answers] == [(job.id, True)]
    assert [row["JobId"] for row in lab.rows("JobKeys")] == [job.id]


def test_a_callers_open_transaction_hides_nothing_else(store: Store, session: Session, lab: Lab, caller: Open) -> None:
    """Every read of waiting rows passes over rows that a caller still holds; on SQLite it reads the state before them."""
    ready = new_jobs(3)
    session.enqueue_jobs(ready)
    connection = caller()
    store.enqueue_in(connection.cursor(), new_jobs(2, priority=1_000))

    assert [job.id for job in session.list_jobs(JobFilter()).jobs] == [job.id for job in ready[::-1]]
    assert [view.pending for view in session.list_queues()] == [3]
    assert session.get_statuses([job.id for job in ready]) == [JobStatus.PENDING] * 3
    holder_fetch = Holder(session).fetch if lab.kind == "sqlserver" else None
    if holder_fetch is not None:
        assert [job.id for job in holder_fetch(5).jobs] == [job.id for job in ready]
    connection.commit()
    assert lab.count("JobsHot") == 5


def test_an_enqueue_that_fails_half_way_leaves_what_the_transaction_did_before_it(
    store: Store, session: Session, lab: Lab, caller: Open
) -> None:
    before, bad, after = new_job(), new_job(idempotency_key="bad", key_scope=KeyScope.RETAINED), new_job()
    with lab.refusing("bad"):
        connection = caller()
        cursor = connection.cursor()
        store.enqueue_in(cursor, [before])

        with pytest.raises(StoreError):
            store.enqueue_in(cursor, [new_job(), bad])
        store.enqueue_in(cursor, [after])
        connection.commit()

    assert {job.id for job in session.list_jobs(JobFilter()).jobs} == {before.id, after.id}
    assert lab.rows("JobKeys") == []


def test_an_enqueue_that_fails_first_thing_leaves_a_transaction_that_goes_on(
    store: Store, session: Session, lab: Lab, caller: Open
) -> None:
    after = new_job()
    with lab.refusing("bad"):
        connection = caller()
        cursor = connection.cursor()
        with pytest.raises(StoreError):
            store.enqueue_in(cursor, [new_job(), new_job(idempotency_key="bad", key_scope=KeyScope.RETAINED)])
        store.enqueue_in(cursor, [after])
        connection.commit()

    assert [job.id for job in session.list_jobs(JobFilter()).jobs] == [after.id]
