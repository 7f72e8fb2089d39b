"""The cost of a job's life does not grow with what else is in the file (C32), counted in steps of SQLite's virtual machine.

Times swing on a busy host; the number of steps does not. A statement that walked the backlog would take some steps per row of it.
"""

from collections.abc import Callable
from contextlib import closing

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import Beat, Failure, Figures, Held, NewJob, Release, Retry
from chokaq.store.sqlite import SqliteSession, SqliteStore
from tests.support import stores
from tests.support.holder import Holder
from tests.support.jobs import ERROR, QUEUE, new_job, new_jobs
from tests.support.lab_sqlite import SqliteLab

FEW, MANY = 300, 15_000
BATCH = 12
SLACK = 200
"""Steps by which two equal cycles may differ (74 seen): a counter row is inserted in a new second, updated within it."""
YEAR = 365 * 86_400_000

BACKLOG: dict[str, dict[str, str]] = {
    "pending, as important": {"Queue": f"'{QUEUE}'"},
    "pending, more important": {"Queue": f"'{QUEUE}'", "Priority": "90"},
    "pending, less important": {"Queue": f"'{QUEUE}'", "Priority": "1"},
    "scheduled, more important": {
        "Queue": f"'{QUEUE}'", "Priority": "90", "IsReady": "0", "DueAtUtc": f"DueAtUtc + {YEAR} + n",
        "ScheduledAtUtc": f"DueAtUtc + {YEAR}",
    },
    "in other queues": {"Queue": "'other-' || (n % 10)", "Priority": "90"},
    "running in other queues": {
        "Queue": "'other-' || (n % 10)", "Status": "2", "WorkerId": "printf('%026d', n % 50)", "LeaseNumber": "1",
        "AttemptCount": "1", "HeartbeatUtc": "DueAtUtc", "StartedAtUtc": "DueAtUtc",
    },
    "in the archive": {},
    "in the DLQ": {},
}  # fmt: skip
"""What is there in bulk, and how its rows differ from the one they are copies of."""
PLACES = {"in the archive": "JobsArchive", "in the DLQ": "JobsDLQ"}


class Counted:
    """Every operation of a job's life on one file, and how many steps each took."""

    def __init__(self, session: SqliteSession) -> None:
        self.session = session
        self.holder, self.idle = Holder(session), Holder(session, "nothing-here")
        self._count = 0
        session._live().set_progress_handler(self._step, 1)

    def cycle(self) -> dict[str, int]:
        """A dozen jobs from enqueue to every end there is; steps by operation."""
        session, worker = self.session, self.holder.worker
        steps: dict[str, int] = {}

        def count(name: str, call: Callable[[], object]) -> None:
            self._count = 0
            call()
            steps[name] = self._count

        jobs: list[NewJob] = new_jobs(BATCH, priority=50)
        held: list[Held] = []
        count("enqueue", lambda: session.enqueue_jobs(jobs))
        count("poll an empty queue", lambda: self.idle.fetch(BATCH))
        count("ask for health", lambda: session.read_health([QUEUE, "nothing-here"]))
        count("fetch", lambda: held.extend(self.holder.claim(BATCH)))
        assert len(held) == BATCH
        count("start", lambda: self.holder.start(held))
        beats = [Beat(job.id, job.lease) for job in held]
        count("keep alive", lambda: session.keep_alive(worker, beats, Figures()))
        third = BATCH // 3
        failed, again, done = held[:third], held[third : 2 * third], held[2 * third :]
        failures = [Failure(job.id, job.lease, JobStatus.FAILED, FailureReason.TIMEOUT, ERROR) for job in failed]
        retries = [Retry(job.id, job.lease, YEAR, ERROR) for job in again[1:]]
        count("archive", lambda: self.holder.succeed(done))
        count("fail", lambda: session.archive_failed(worker, failures))
        count("retry", lambda: session.reschedule_for_retry(worker, retries))
        back = [Release(job.id, job.lease, YEAR) for job in again[:1]]
        count("release", lambda: session.release_jobs(worker, back))
        return steps

    def _step(self) -> int:
        self._count += 1
        return 0


def load(lab: SqliteLab, session: SqliteSession, what: str, count: int) -> None:
    """Put `count` rows of a kind behind the store's back, as copies of one that the store wrote."""
    table, changes = PLACES.get(what, "JobsHot"), BACKLOG[what]
    holder = Holder(session, "template")
    job = new_job(queue="template")
    session.enqueue_jobs([job])
    if table == "JobsArchive":
        holder.succeed(holder.take(1))
    elif table == "JobsDLQ":
        [held] = holder.take(1)
        failure = Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.TIMEOUT)
        assert session.archive_failed(holder.worker, [failure]) == [Answer.APPLIED]
    columns = [row["name"] for row in lab.query(f"SELECT name FROM pragma_table_info('{table}')")]
    values = {name: name for name in columns} | {"Id": "printf('00BULK%020d', n)", "Queue": f"'{QUEUE}'"} | changes
    lab.execute(
        f"WITH RECURSIVE Numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM Numbers WHERE n < {count}) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values[name] for name in columns)} "
        f"FROM Numbers CROSS JOIN {table} WHERE Id = ?",
        job.id,
    )
    lab.execute(f"DELETE FROM {table} WHERE Id = ?", job.id)
    assert lab.count(table) == count


def measured(settings: DatabaseSettings, what: str, count: int) -> tuple[dict[str, int], int]:
    """Steps by operation, and those of a statement that does walk the backlog."""
    store = stores.prepare(settings)
    assert isinstance(store, SqliteStore)
    with closing(store.session()) as session, closing(stores.laboratory(settings)) as lab:
        assert isinstance(lab, SqliteLab)
        load(lab, session, what, count)
        counted = Counted(session)
        # The first cycle prepares statements and makes counter rows.
        counted.cycle()
        steps = counted.cycle()
        counted._count = 0
        session._live().execute(f"SELECT COUNT(*) FROM {PLACES.get(what, 'JobsHot')} WHERE +Type = 'x'").fetchone()
        return steps, counted._count


@pytest.mark.parametrize("what", BACKLOG)
def test_fifty_times_the_backlog_takes_the_same_steps(tmp_path_factory: pytest.TempPathFactory, what: str) -> None:
    few, walk = measured(stores.options(stores.SQLITE, tmp_path_factory.mktemp("few")), what, FEW)
    many, long_walk = measured(stores.options(stores.SQLITE, tmp_path_factory.mktemp("many")), what, MANY)

    # What is counted does see a walk.
    assert long_walk - walk > MANY > 50 * SLACK
    grown = {name: (few[name], many[name]) for name in few if abs(many[name] - few[name]) > SLACK}
    assert grown == {}
