"""The database as probes see it: asked rarely, waited for briefly, never in two threads."""

import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from chokaq.store.errors import SchemaMismatch, StoreUnavailable
from chokaq.store.probing import QueueLag, StoreHealth
from chokaq.supervisor.probes.watcher import EVERY, LONGEST_PAUSE, Known, Watcher

LIMIT = 10.0
FINE = StoreHealth(
    version=4,
    needed=4,
    fits=True,
    queues=[
        QueueLag(name="emails", paused=False, active=True, oldest_due_ms=1_500),
        QueueLag(name="paused", paused=True, active=True, oldest_due_ms=None),
        QueueLag(name="retired", paused=True, active=False, oldest_due_ms=7),
    ],
)


class Database:
    """A database that answers as told, and a clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.answer: StoreHealth | Exception = FINE
        self.opening: Exception | None = None
        self.flowing = threading.Event()
        self.flowing.set()
        self.asked = threading.Semaphore(0)
        self.questions: list[tuple[float, list[str]]] = []
        self.opened = self.closed = 0
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def clock(self) -> float:
        """The time of this test."""
        return self.now

    def session(self) -> "Database":
        """Open."""
        if self.opening is not None:
            self.questions.append((self.now, []))
            raise self.opening
        self.opened += 1
        return self

    def read_health(self, queues: Sequence[str]) -> StoreHealth:
        """Answer when it flows."""
        with self.lock:
            self.questions.append((self.now, list(queues)))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.asked.release()
        assert self.flowing.wait(LIMIT)
        with self.lock:
            self.at_once -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        """Count."""
        self.closed += 1


@pytest.fixture
def database() -> Database:
    """One that is well."""
    return Database()


@pytest.fixture
def watcher(database: Database) -> Iterator[Watcher]:
    """Over it."""
    watcher = Watcher(database.session, lambda: ["emails", "paused"], database.clock)  # type: ignore[arg-type,return-value]
    yield watcher
    database.flowing.set()
    watcher.close()
    if watcher._thread is not None:
        watcher._thread.join(LIMIT)
        assert not watcher._thread.is_alive()


def test_nobody_is_asked_before_somebody_wants_to_know(database: Database, watcher: Watcher) -> None:
    assert watcher._thread is None
    known = watcher.look(LIMIT)
    assert database.questions == [(1_000.0, ["emails", "paused"])]
    assert known.database.answered
    assert (known.schema.known, known.schema.fits, known.schema.live) == (True, True, 4)
    assert known.lag is not None
    assert [(lag.name, lag.held, lag.oldest_due) for lag in known.lag] == [
        ("emails", None, 1.5),
        ("paused", "paused", None),
        ("retired", "inactive", 0.007),
    ]


def test_an_answer_serves_everybody_for_a_second(database: Database, watcher: Watcher) -> None:
    for step in range(50):
        database.now = 1_000.0 + step * 0.1
        assert watcher.look(LIMIT).database.answered
    times = [at for at, _ in database.questions]
    assert len(times) == 5
    assert all(later - earlier >= EVERY for earlier, later in pairwise(times))
    assert database.opened == 1


def test_many_at_once_share_one_question(database: Database, watcher: Watcher) -> None:
    database.flowing.clear()
    found: list[Known] = []
    threads = [threading.Thread(target=lambda: found.append(watcher.look(LIMIT))) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert database.asked.acquire(timeout=LIMIT)
    # Whoever comes while the question is under way waits for its answer, and does not make another of it.
    watcher.look(0.0)
    database.flowing.set()
    for thread in threads:
        thread.join()
    watcher.look(0.0)
    assert len(found) == 20
    assert all(known.database.answered for known in found)
    assert len(database.questions) == 1
    assert database.most_at_once == 1


def test_nobody_waits_longer_than_wanted_while_the_database_hangs(database: Database, watcher: Watcher) -> None:
    database.flowing.clear()
    known = watcher.look(0.02)
    assert not known.database.answered
    assert database.asked.acquire(timeout=LIMIT)
    database.now += 30.0
    known = watcher.look(0.0)
    assert (known.database.waiting, known.lag) == (30.0, None)
    assert not known.schema.known
    assert watcher.look(0.02).database.waiting == 30.0
    assert len(database.questions) == 1
    database.flowing.set()
    assert watcher.look(LIMIT).database.answered


def test_what_was_known_is_still_told_while_the_next_answer_is_waited_for(database: Database, watcher: Watcher) -> None:
    watcher.look(LIMIT)
    database.flowing.clear()
    database.now += 2.0
    known = watcher.look(0.0)
    assert (known.database.answered, known.database.age) == (True, 2.0)
    assert known.lag is not None
    assert known.schema.known


def test_a_failure_is_told_asked_about_ever_later_and_forgotten(
    database: Database, watcher: Watcher, capfd: pytest.CaptureFixture[str]
) -> None:
    watcher.look(LIMIT)
    database.answer = StoreUnavailable("mssql://sa:hunter2@db/jobs is away")
    database.opening = None
    for step in range(200):
        database.now = 1_001.0 + step * 0.1
        known = watcher.look(LIMIT)
        assert known.database.failed
        assert known.lag is None
        assert known.schema.known
    times = [at for at, _ in database.questions[1:]]
    gaps = [round(later - earlier, 1) for earlier, later in pairwise(times)]
    assert gaps[:4] == [1.0, 2.0, 4.0, LONGEST_PAUSE]
    assert set(gaps[3:]) == {LONGEST_PAUSE}
    # Every session that failed was closed, and the next question opened another.
    assert database.opened == database.closed == len(times)
    database.answer = FINE
    database.now += LONGEST_PAUSE
    assert watcher.look(LIMIT).database.answered
    told = capfd.readouterr()
    log = told.out + told.err
    assert log.count("probe_database_failed") == 1
    assert log.count("probe_database_answers") == 1
    assert "hunter2" not in log


def test_a_database_that_cannot_be_reached_at_all_is_a_failure_too(database: Database, watcher: Watcher) -> None:
    database.opening = OSError("no driver")
    assert watcher.look(LIMIT).database.failed
    database.opening = None
    database.now += EVERY
    assert watcher.look(LIMIT).database.answered


def test_a_schema_that_does_not_fit_is_an_answer(database: Database, watcher: Watcher) -> None:
    database.answer = StoreHealth(version=5, needed=4, fits=False, queues=[])
    known = watcher.look(LIMIT)
    assert known.database.answered
    assert (known.schema.fits, known.schema.live, known.schema.needed) == (False, 5, 4)
    database.answer, database.now = FINE, database.now + EVERY
    assert watcher.look(LIMIT).schema.fits
    database.answer, database.now = SchemaMismatch("version 5"), database.now + EVERY
    known = watcher.look(LIMIT)
    assert (known.database.answered, known.database.failed) == (True, False)
    assert (known.schema.known, known.schema.fits) == (True, False)
    # An outage says nothing about the schema.
    database.answer, database.now = StoreUnavailable("away"), database.now + LONGEST_PAUSE
    assert not watcher.look(LIMIT).schema.fits


def test_one_that_is_closed_asks_no_more(database: Database, watcher: Watcher) -> None:
    watcher.look(LIMIT)
    watcher.close()
    assert watcher._thread is not None
    watcher._thread.join(LIMIT)
    assert database.closed == 1
    database.now += 60.0
    assert watcher.look(0.0).database.answered
    assert len(database.questions) == 1
