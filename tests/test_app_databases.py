"""An application whose queues live in two databases."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from chokaq import ChokaQ, Enqueue, JobNotFound, JobStatus
from chokaq.config.settings import QueueSettings, Settings
from chokaq.store import several as module
from chokaq.store.borrowing import foreign
from chokaq.store.client import ClientLane
from chokaq.store.doorbell import Doorbell
from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.several import SeveralLanes
from chokaq.testing import Inbox
from tests.support import stores
from tests.support.ids import new_id

ABSENT = "0" * 26


class Mail(msgspec.Struct):
    to: str


class Report(msgspec.Struct):
    year: int


def settings_of(databases: dict[str, DatabaseSettings]) -> Settings:
    """`emails` lives in main, `reports` in archive."""
    quick = {name: msgspec.structs.replace(one, retries=0) for name, one in databases.items()}
    return Settings(
        database=quick["main"],
        databases=quick,
        places={"emails": "main", "reports": "archive"},
        queues={"emails": QueueSettings(name="emails"), "reports": QueueSettings(name="reports", database="archive")},
    )


@pytest.fixture
def app(databases: dict[str, DatabaseSettings]) -> Iterator[ChokaQ]:
    with ChokaQ(settings_of(databases)) as app:
        app.job("mail.v1", Mail, queue="emails")
        app.job("report.v1", Report, queue="reports")
        yield app


def held(databases: dict[str, DatabaseSettings], name: str) -> list[str]:
    """The jobs that wait in one of the databases, as `queue id`."""
    with closing(stores.laboratory(databases[name])) as lab:
        return sorted(f"{row['Queue']} {row['Id']}" for row in lab.rows("JobsHot"))


async def test_a_job_goes_where_its_queue_lives(app: ChokaQ, databases: dict[str, DatabaseSettings]) -> None:
    mail, report = await app.enqueue(Mail("a")), app.enqueue_sync(Report(2030))
    other = await app.enqueue(Mail("b"), queue="never heard of")
    assert held(databases, "main") == sorted([f"emails {mail.id}", f"never heard of {other.id}"])
    assert held(databases, "archive") == [f"reports {report.id}"]


async def test_many_jobs_are_divided_and_answered_in_order(app: ChokaQ, databases: dict[str, DatabaseSettings]) -> None:
    jobs: list[object] = [Mail("a"), Report(1), Report(2), Enqueue(Mail("b"), queue="reports"), Mail("c")]
    for answers in (await app.enqueue_many(jobs), app.enqueue_many_sync(jobs)):
        found = [await app.get(answer.id) for answer in answers]
        assert [job.queue for job in found if job] == ["emails", "reports", "reports", "reports", "emails"]
        assert [job.payload for job in found if job] == [
            '{"to":"a"}',
            '{"year":1}',
            '{"year":2}',
            '{"to":"b"}',
            '{"to":"c"}',
        ]
    assert len(held(databases, "main")) == 4
    assert len(held(databases, "archive")) == 6
    assert await app.enqueue_many([]) == app.enqueue_many_sync([]) == []


async def test_keys_are_those_of_a_database(app: ChokaQ) -> None:
    first = await app.enqueue(Mail("a"), idempotency_key="k")
    assert not (await app.enqueue(Mail("a"), idempotency_key="k")).created
    # The same key in another database is another key; so it is inside one call.
    assert (await app.enqueue(Report(1), idempotency_key="k")).created
    one, two = await app.enqueue_many(
        [Enqueue(Mail("x"), idempotency_key="j"), Enqueue(Report(2), idempotency_key="j")]
    )
    assert one.created
    assert two.created
    assert first.id != one.id


async def test_a_job_is_found_by_its_id_alone(app: ChokaQ, databases: dict[str, DatabaseSettings]) -> None:
    answers = await app.enqueue_many([Mail("a"), Report(1)])
    with ChokaQ(settings_of(databases)) as stranger:
        for answer, queue in zip(answers, ("emails", "reports"), strict=True):
            job = await stranger.get(answer.id)
            assert job is not None
            assert job.queue == queue
            assert stranger.get_sync(answer.id) == job
        assert await stranger.get(ABSENT) is None
        assert await stranger.get("no id") is None
        assert (await stranger.cancel(ABSENT)).result == "unknown"
        assert (await stranger.cancel(answers[1].id, reason="why not")).result == "cancelled"
        assert stranger.cancel_sync(answers[0].id).result == "cancelled"
        ended = await stranger.wait(answers[1].id, timeout=10)
        assert ended.status == stranger.wait_sync(answers[0].id, timeout=10).status == JobStatus.CANCELLED
        with pytest.raises(JobNotFound):
            await stranger.wait(ABSENT, timeout=10)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes, from now on, which database is asked for a job (by the file or schema of its lane)."""
    seen: list[str] = []
    call = ClientLane.call_sync

    def noted(lane: ClientLane, operation: object) -> object:
        seen.append("archive" if stores.SECOND_SCHEMA in lane._store.identity else "main")
        return call(lane, operation)  # type: ignore[arg-type]

    monkeypatch.setattr(ClientLane, "call_sync", noted)
    return seen


def test_the_likely_database_is_asked_first(
    app: ChokaQ, databases: dict[str, DatabaseSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = app.enqueue_sync(Report(1))
    seen = asked(monkeypatch)
    assert app.get_sync(report.id) is not None
    assert seen == ["archive"], "this process enqueued it there"
    seen.clear()
    with ChokaQ(settings_of(databases)) as stranger:
        assert stranger.get_sync(report.id) is not None
        assert seen == ["main", "archive"], "in the order of the configuration"
        assert stranger.get_sync(report.id) is not None
        assert seen == ["main", "archive", "archive"], "it was found there"


def test_what_is_remembered_of_jobs_is_bounded(app: ChokaQ, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    answers = app.enqueue_many_sync([Mail(str(number)) for number in range(5)] + [Report(1)])
    lanes = app._client
    assert isinstance(lanes, SeveralLanes)
    assert len(lanes._where) == 3
    assert all(app.get_sync(answer.id) for answer in answers)


# ── one of them is away ───────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def half(app: ChokaQ, databases: dict[str, DatabaseSettings], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the databases that do not answer; empty at first."""
    away: set[str] = set()
    lanes = app._client
    assert isinstance(lanes, SeveralLanes)
    for name, lane in lanes._lanes.items():
        session = lane._store.session

        def opened(name: str = name, session: object = session) -> object:
            if name in away:
                raise StoreUnavailable(f"{name} is away")
            return session()  # type: ignore[operator]

        monkeypatch.setattr(lane._store, "session", opened)
    return away


async def test_the_outage_of_one_leaves_the_other_at_work(app: ChokaQ, half: set[str]) -> None:
    half.add("archive")
    mail = await app.enqueue(Mail("a"))
    assert (await app.get(mail.id)) is not None
    with pytest.raises(StoreUnavailable, match="archive is away"):
        await app.enqueue(Report(1))


@pytest.mark.parametrize("sync", [True, False])
async def test_a_failure_in_the_middle_says_what_was_accepted(
    app: ChokaQ, half: set[str], databases: dict[str, DatabaseSettings], sync: bool
) -> None:
    half.add("main")
    jobs = [Mail("a"), Report(1), Report(2)]

    async def try_it() -> None:
        app.enqueue_many_sync(jobs) if sync else await app.enqueue_many(jobs)

    with pytest.raises(StoreUnavailable) as caught:
        await try_it()
    assert caught.value.__notes__ == [
        "this was the database main, with 1 job",
        "the database archive has accepted its 2 jobs",
    ]
    assert len(held(databases, "archive")) == 2
    half.add("archive")
    app.close()
    with pytest.raises(StoreUnavailable) as caught:
        await try_it()
    assert caught.value.__notes__[1] == "the database archive, with 2 jobs, failed too: archive is away"


class Sink:
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], float] = {}

    def add(self, name: str, *values: str, amount: float = 1.0) -> None:
        self.counts[name, *values] = self.counts.get((name, *values), 0.0) + amount

    def observe(self, name: str, *values: str, value: float) -> None:
        assert value >= 0


@pytest.mark.parametrize("sync", [True, False])
async def test_what_one_has_accepted_is_counted_as_created_and_the_rest_as_refused(
    app: ChokaQ, half: set[str], sync: bool
) -> None:
    half.add("main")
    sink = Sink()
    app.count_with(sink)
    jobs = [Mail("a"), Report(1), Report(2)]
    with pytest.raises(StoreUnavailable):
        app.enqueue_many_sync(jobs) if sync else await app.enqueue_many(jobs)
    assert sink.counts == {
        ("chokaq_jobs_enqueued_total", "reports", "report.v1"): 2,
        ("chokaq_jobs_refused_total", "emails", "mail.v1", "chokaq.store.errors.StoreUnavailable"): 1,
    }


async def test_there_is_no_such_job_is_never_said_while_one_has_not_answered(app: ChokaQ, half: set[str]) -> None:
    half.add("archive")
    with pytest.raises(StoreUnavailable) as caught:
        await app.get(ABSENT)
    assert caught.value.__notes__ == [
        "this was the database archive, which may hold the job; main: there is no such job"
    ]
    with pytest.raises(StoreUnavailable):
        app.cancel_sync(ABSENT)
    half.clear()
    assert await app.get(ABSENT) is None


def test_one_that_did_not_answer_is_asked_last(
    app: ChokaQ, half: set[str], databases: dict[str, DatabaseSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChokaQ(settings_of(databases)) as other:
        other.job("report.v1", Report, queue="reports")
        first, second = other.enqueue_many_sync([Report(1), Report(2)])
    half.add("main")
    seen = asked(monkeypatch)
    assert app.get_sync(first.id) is not None
    assert app.get_sync(second.id) is not None
    assert seen == ["main", "archive", "archive"]
    half.clear()
    # It answers again: its place is the old one.
    assert app.get_sync(ABSENT) is None
    seen.clear()
    assert app.get_sync(ABSENT) is None
    assert seen == ["main", "archive"]


# ── the caller's transaction ──────────────────────────────────────────────────────────────────────────────────────────
def test_a_job_of_the_callers_transaction_goes_where_its_cursor_is(
    app: ChokaQ, databases: dict[str, DatabaseSettings]
) -> None:
    with closing(stores.laboratory(databases["archive"])) as lab, closing(lab.caller()) as connection:
        cursor = connection.cursor()
        if lab.kind == "sqlite":
            cursor.execute("BEGIN")
        answers = app.enqueue_many_in(cursor, [Report(1), Report(2)])
        assert all(answer.created for answer in answers)
        connection.commit()
    assert held(databases, "archive") == sorted(f"reports {answer.id}" for answer in answers)
    app.ring("reports", "emails")


def test_jobs_of_two_databases_cannot_share_a_transaction(app: ChokaQ, databases: dict[str, DatabaseSettings]) -> None:
    with closing(stores.laboratory(databases["archive"])) as lab, closing(lab.caller()) as connection:
        with pytest.raises(StoreRefused, match=r"live in several: archive \(reports\); main \(emails\)"):
            app.enqueue_many_in(connection.cursor(), [Report(1), Mail("a")])
        connection.rollback()
    assert app.enqueue_many_in(None, []) == []


def test_a_cursor_on_another_file_is_refused(tmp_path: Path) -> None:
    two = {name: stores.options("sqlite", tmp_path, name) for name in ("main", "archive")}
    for options in two.values():
        stores.prepare(options)
    with ChokaQ(settings_of(two)) as app, closing(sqlite3.connect(tmp_path / "main.db")) as connection:
        app.job("report.v1", Report, queue="reports")
        connection.execute("BEGIN")
        with pytest.raises(
            StoreRefused, match=r"the cursor's database is .*main\.db, not this store's .*archive\.db"
        ) as caught:
            app.enqueue_in(connection.cursor(), Report(1))
        assert caught.value.__notes__ == ["the queue reports lives in the database archive"]
        connection.rollback()


class Cursor:
    """A pyodbc cursor as far as it is asked where it is."""

    __module__ = "pyodbc"

    def __init__(self, database: str) -> None:
        self.connection, self._database = self, database

    def getinfo(self, what: int) -> str:
        """The driver's word."""
        assert what == 16, "SQL_DATABASE_NAME"
        return self._database


def test_a_cursor_on_another_database_of_a_server_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    monkeypatch.setitem(sys.modules, "pyodbc", SimpleNamespace(SQL_DATABASE_NAME=16))
    options = DatabaseSettings(url="mssql://u:secret@host/Archive")
    assert foreign(Cursor("archive"), options) is None
    told = foreign(Cursor("jobs"), options)
    assert told == "the cursor is on the database jobs of its server, not on mssql://u:***@host/Archive"
    # Whatever else it is, the store itself refuses it.
    assert foreign(object(), options) is None
    assert foreign(Cursor("jobs"), DatabaseSettings()) is None


# ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_bell_is_rung_where_the_queue_lives(app: ChokaQ, databases: dict[str, DatabaseSettings]) -> None:
    bell = Doorbell(open_store(databases["archive"]).identity).listen("reports")
    wrong = Doorbell(open_store(databases["main"]).identity).listen("reports")
    try:
        app.enqueue_sync(Report(1))
        app.ring("reports")
        assert bell.drain() == 2
        assert wrong.drain() == 0
    finally:
        bell.close()
        wrong.close()


def test_one_database_under_databases_is_served_by_one_lane(databases: dict[str, DatabaseSettings]) -> None:
    settings = Settings(database=databases["main"], databases={"main": databases["main"]}, places={"emails": "main"})
    with ChokaQ(settings) as app:
        app.job("mail.v1", Mail, queue="emails")
        assert app.enqueue_sync(Mail("a")).created
        assert isinstance(app._client, ClientLane)


def test_an_inbox_stands_for_all_of_them(app: ChokaQ, databases: dict[str, DatabaseSettings]) -> None:
    done: list[object] = []

    def note(job: dict[str, object]) -> None:
        done.append(job)

    app.handler("mail.v1")(note)
    app.handler("report.v1")(note)
    with Inbox(app, settings_of(databases)) as inbox:
        app.enqueue_many_sync([Mail("a"), Report(1)])
        assert len(inbox.drain().succeeded) == 2
    assert len(done) == 2
    assert held(databases, "main") == held(databases, "archive") == []
    assert app.get_sync(new_id()) is None
