"""One program whose queues live in two databases: `work` in main, `other` in archive."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import NewJob
from tests.support import stores
from tests.support.ids import new_id

from .conftest import Start
from .harness import PROGRAMS, FakeProgram, Program, write_script

pytestmark = pytest.mark.processes
CONFIG = """
app: shop:app
databases:
  main: {main}
  archive: {archive}
queues:
  work: {{max_workers: 5, heartbeat: 1s, {policy}}}
  other: {{max_workers: 5, heartbeat: 1s, database: archive, {policy}}}
supervisor: {{shutdown_grace: 10s, respawn_min: 50ms, respawn_max: 200ms}}
"""
HOME = {"work": "main", "other": "archive"}


def mapping(options: DatabaseSettings) -> str:
    """A database as it stands in the YAML."""
    return f"{{url: '{options.url}', schema: {options.schema}, command_timeout: {options.command_timeout}}}"


class Shop:
    """A running worker and its databases."""

    def __init__(self, folder: Path, databases: dict[str, DatabaseSettings], policy: str, served: str) -> None:
        self.folder = folder
        self.ledger = folder / "ledger"
        self.sessions: dict[str, Session] = {name: open_store(one).session() for name, one in databases.items()}
        self.config = folder / "chokaq.yaml"
        self.config.write_text(
            CONFIG.format(policy=policy, **{name: mapping(options) for name, options in databases.items()})
        )
        environ = {"LEDGER": str(self.ledger), "PYTHONPATH": os.pathsep.join([str(PROGRAMS), str(PROGRAMS.parents[2])])}
        if served:
            environ["CHOKAQ_QUEUES"] = served
        self.program = Program([str(PROGRAMS / "real_worker.py"), str(self.config)], folder, environ)

    def put(self, type_key: str, count: int = 1, payload: str = "{}") -> list[str]:
        """Enqueue jobs where their queue lives."""
        queue = type_key.partition(".")[0]
        jobs = [NewJob(id=new_id(), queue=queue, type_key=type_key, payload=payload) for _ in range(count)]
        self.sessions[HOME[queue]].enqueue_jobs(jobs)
        return [job.id for job in jobs]

    def runs(self, *job_ids: str) -> list[str]:
        """The executions of these jobs so far: `id type attempt pid`."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [line for line in lines if line.split()[0] in job_ids]

    def wait_for_runs(self, job_ids: list[str], count: int) -> None:
        """Until the handlers of these jobs have begun that often."""
        self.program.until(lambda: len(self.runs(*job_ids)) >= count, f"{count} executions", 40)

    def wait_for(self, database: str, job_ids: list[str], status: JobStatus) -> None:
        """Until all of them are in that state, in that database."""
        session = self.sessions[database]
        self.program.until(
            lambda: set(session.get_statuses(job_ids)) == {status}, f"{status.label} for {job_ids} in {database}", 40
        )

    def child(self, queue: str) -> int:
        """Pid of its child."""
        return int(self.program.wait("child_ready", queue=queue)[-1]["pid"])

    def served_in(self, database: str) -> set[str]:
        """The queues of the workers that are registered there; maintenance has an empty one."""
        return {worker.queue for worker in self.sessions[database].list_workers()}

    def close(self) -> None:
        """End it."""
        self.program.destroy()
        for session in self.sessions.values():
            session.close()


Open = Callable[..., Shop]


@pytest.fixture
def shop(databases: dict[str, DatabaseSettings], tmp_path: Path) -> Iterator[Open]:
    """Start a worker: `shop(policy="on_crash: retry")`."""
    started: list[Shop] = []

    def begin(policy: str = "max_attempts: 3", served: str = "") -> Shop:
        started.append(Shop(tmp_path, databases, policy, served))
        return started[-1]

    yield begin
    for one in started:
        one.close()


def test_each_queue_is_served_and_maintained_in_its_database(shop: Open) -> None:
    one = shop()
    here, there = one.put("work.quick", 30), one.put("other.quick", 30)
    one.wait_for("main", here, JobStatus.SUCCEEDED)
    one.wait_for("archive", there, JobStatus.SUCCEEDED)
    for name in ("main", "archive"):
        one.program.wait("maintenance_ready", database=name)
    assert one.served_in("main") == {"work", ""}
    assert one.served_in("archive") == {"other", ""}
    assert len(one.program.events("maintenance_forked")) == 2
    # Both lead, each the fleet of its own database.
    one.program.wait("leadership", 2, leading=True)
    assert one.program.end() == 0
    assert len(one.runs(*here, *there)) == 60
    assert one.served_in("main") == one.served_in("archive") == set()


def test_a_handler_enqueues_into_the_other_database(shop: Open) -> None:
    one = shop()
    jobs = one.put("work.pass_on", 5, '{"type": "other.quick"}')
    one.wait_for("main", jobs, JobStatus.SUCCEEDED)
    one.program.until(lambda: one.ledger.read_text().count("other.quick") == 5, "the jobs that they enqueued", 40)
    assert one.program.end() == 0


def test_a_worker_that_serves_one_queue_maintains_one_database_and_still_enqueues_into_the_other(shop: Open) -> None:
    one = shop(served="work")
    [job] = one.put("work.pass_on", 1, '{"type": "other.quick"}')
    one.wait_for("main", [job], JobStatus.SUCCEEDED)
    one.program.wait("maintenance_ready", database="main")
    assert one.program.events("maintenance_forked", database="archive") == []
    assert one.served_in("archive") == set()
    [queue] = one.sessions["archive"].list_queues()
    assert (queue.name, queue.pending) == ("other", 1)
    assert one.program.end() == 0


@pytest.mark.parametrize("queue", ["work", "other"])
def test_the_death_of_a_child_is_told_where_its_queue_lives(shop: Open, tmp_path: Path, queue: str) -> None:
    one = shop("on_crash: retry, retry_base_delay: 50ms, retry_jitter: 0s")
    gate = tmp_path / "gate"
    jobs = {name: one.put(f"{name}.wait", 7, f'{{"file": "{gate}"}}') for name in HOME}
    for name in HOME:
        one.wait_for_runs(jobs[name], 5)
    [neighbour] = {*HOME} - {queue}
    survivor = one.child(neighbour)
    os.kill(one.child(queue), signal.SIGKILL)
    one.program.wait("notice_acknowledged", queue=queue, cause="crash")
    one.program.wait("child_ready", 2, queue=queue)
    gate.touch()
    for name, home in HOME.items():
        one.wait_for(home, jobs[name], JobStatus.SUCCEEDED)
    # Five had begun and ran again, charged, two were only buffered; nothing happened to those of the other database.
    assert len(one.runs(*jobs[queue])) == 12
    assert len(one.runs(*jobs[neighbour])) == 7
    assert one.child(neighbour) == survivor
    ended = [worker for worker in one.sessions[HOME[queue]].list_workers(ended=True) if worker.ended_at is not None]
    assert [worker.queue for worker in ended] == [queue]
    assert "signal 9" in (ended[0].ended_cause or "")
    assert [worker for worker in one.sessions[HOME[neighbour]].list_workers(ended=True) if worker.ended_at] == []
    assert one.program.end() == 0


# ── one of them is away ───────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def files(tmp_path: Path) -> dict[str, DatabaseSettings]:
    """Two files whose writers give up soon."""
    found = {
        name: DatabaseSettings(url=f"sqlite:///{tmp_path / name}.db", command_timeout=1.0)
        for name in ("main", "archive")
    }
    for options in found.values():
        stores.prepare(options)
    return found


@pytest.fixture
def lock(files: dict[str, DatabaseSettings]) -> Iterator[sqlite3.Connection]:
    """A foreign writer of the archive: `BEGIN IMMEDIATE` takes it away, `ROLLBACK` brings it back."""
    path = files["archive"].url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as foreign:
        yield foreign


def test_the_outage_of_one_leaves_the_other_queue_at_work(
    files: dict[str, DatabaseSettings], lock: sqlite3.Connection, tmp_path: Path
) -> None:
    one = Shop(tmp_path, files, "on_crash: retry, retry_base_delay: 50ms, retry_jitter: 0s", "")
    try:
        one.program.wait("supervisor_ready")
        for name in HOME.values():
            one.program.wait("maintenance_ready", database=name)
        gate = tmp_path / "gate"
        waiting = one.put("other.wait", 2, f'{{"file": "{gate}"}}')
        one.wait_for_runs(waiting, 2)
        lock.execute("BEGIN IMMEDIATE")
        os.kill(one.child("other"), signal.SIGKILL)
        [told] = one.program.wait("supervisor_not_ready")
        assert "other" in told["problem"]
        # A whole life of the other queue meanwhile: jobs, the death of its child, its release, its successor.
        held = one.put("work.wait", 5, f'{{"file": "{gate}"}}')
        one.wait_for_runs(held, 5)
        os.kill(one.child("work"), signal.SIGKILL)
        one.program.wait("notice_acknowledged", queue="work")
        one.program.wait("child_ready", 2, queue="work")
        quick = one.put("work.quick", 20)
        one.wait_for("main", quick, JobStatus.SUCCEEDED)
        assert one.program.events("notice_acknowledged", queue="other") == []
        gate.touch()
        one.wait_for("main", held, JobStatus.SUCCEEDED)
        lock.execute("ROLLBACK")
        one.program.wait("notice_acknowledged", queue="other")
        one.wait_for("archive", waiting, JobStatus.SUCCEEDED)
        one.program.wait("supervisor_ready", 2)
        assert one.program.end() == 0
    finally:
        one.close()


def test_one_that_is_away_at_the_start_keeps_no_other_queue_waiting(
    files: dict[str, DatabaseSettings], lock: sqlite3.Connection, tmp_path: Path
) -> None:
    lock.execute("BEGIN IMMEDIATE")
    one = Shop(tmp_path, files, "max_attempts: 3", "")
    try:
        quick = one.put("work.quick", 5)
        one.wait_for("main", quick, JobStatus.SUCCEEDED)
        assert one.program.events("supervisor_ready") == []
        lock.execute("ROLLBACK")
        one.program.wait("supervisor_ready")
        later = one.put("other.quick", 5)
        one.wait_for("archive", later, JobStatus.SUCCEEDED)
        assert one.program.end() == 0
    finally:
        one.close()


# ── reloading ─────────────────────────────────────────────────────────────────────────────────────────────────────────
TWO = """app: fake_shop:app
databases: {main: "sqlite:///one.db", archive: "sqlite:///two.db", third: "sqlite:///three.db"}
queues: {alpha: {}, beta: {database: archive}}
supervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms}
"""


class TwoDatabases(FakeProgram):
    """A supervisor with fake processes and several databases."""

    def configure(self, text: str, database: str = "") -> None:
        """Write the YAML file as it is."""
        del database
        self.config.write_text(text)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDatabases]:
    """It runs."""
    write_script(tmp_path / "control", "nobody")
    program = TwoDatabases(tmp_path, TWO)
    yield program
    program.destroy()


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "alpha: {}",
            "alpha: {database: archive}",
            "queues.alpha.database: a queue that moves (from the database main to archive) needs a restart",
        ),
        (
            "beta: {database: archive}",
            "beta: {}",
            "queues.beta.database: a queue that moves (from the database archive to main)",
        ),
        # What is enqueued into a queue that is not named any more would go to main.
        (
            ", beta: {database: archive}",
            "",
            "queues.beta.database: a queue that moves (from the database archive to main)",
        ),
        ("two.db", "elsewhere.db", "databases.archive.url: another database needs a restart"),
        ("main:", "first:", "queues.alpha.database: a queue that moves (from the database main to first)"),
    ],
)
def test_a_queue_moves_by_a_restart_only(two: TwoDatabases, before: str, after: str, problem: str) -> None:
    two.wait("supervisor_ready")
    two.configure(TWO.replace(before, after))
    two.send(signal.SIGHUP)
    [refused] = two.wait("reload_refused")
    assert problem in refused["problem"]
    assert two.events("drain_started") == []
    assert two.end() == 0


def test_a_new_queue_may_live_anywhere(two: TwoDatabases) -> None:
    two.wait("supervisor_ready")
    two.configure(TWO.replace("beta: {", "gamma: {database: third}, beta: {"))
    two.send(signal.SIGHUP)
    two.wait("child_ready", queue="gamma")
    two.wait("maintenance_ready", database="third")
    os.kill(two.events("child_ready", queue="gamma")[0]["pid"], signal.SIGKILL)
    two.wait("notice_acknowledged", queue="gamma")
    two.wait("child_ready", 2, queue="gamma")
    assert two.end() == 0


def test_one_database_may_become_the_main_one_of_several(start: Start) -> None:
    program = start("queues: {alpha: {}}\nsupervisor: {shutdown_grace: 5s}\n")
    program.wait("supervisor_ready")
    program.config.write_text(
        "app: fake_shop:app\ndatabases: {main: 'sqlite:///unused.db', more: 'sqlite:///more.db'}\n"
        "queues: {alpha: {}, beta: {database: more}}\nsupervisor: {shutdown_grace: 5s}\n"
    )
    program.send(signal.SIGHUP)
    program.wait("child_ready", queue="beta")
    program.wait("maintenance_ready", database="more")
    assert program.end() == 0
