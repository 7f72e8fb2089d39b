"""Probes of real workers on real stores: outages, schemas, lag and pauses; The Deck beside them; `chokaq health`."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import NewJob, QueueChange
from chokaq.store.sqlite import SqliteStore
from chokaq.store.sqlite.flock import FileLock
from tests.support.ids import new_id
from tests.support.lab import Lab
from tests.support.polling import wait_until
from tests.support.processes import ROOT
from tests.support.proxy import Proxy
from tests.support.supervised import Program

from .asking import ask, port_of, status, until

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]
BOOT = 90.0
APP = """
import asyncio
from typing import Any
from chokaq import ChokaQ, JobContext

app = ChokaQ()
app.job("work.wait", dict, queue="work")
app.job("other.wait", dict, queue="other")


@app.handler("work.wait")
async def wait(job: dict[str, Any], ctx: JobContext) -> None:
    await asyncio.Event().wait()


@app.handler("other.wait")
async def other(job: dict[str, Any], ctx: JobContext) -> None:
    await asyncio.Event().wait()
"""
CONFIG = """
app: probed_app:app
{databases}
log_format: json
queues:
  work: {{max_workers: 1, prefetch: 0, heartbeat: 1s}}
  other: {{max_workers: 1, heartbeat: 1s, {place}}}
supervisor: {{shutdown_grace: 10s, respawn_min: 50ms, respawn_max: 200ms}}
probes: {{port: 0, database_timeout: 1s, {probes}}}
{more}
"""
Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a worker: `start(url, probes="lag_unhealthy: 1h", more="deck: {enabled: true}")`."""
    started: list[Program] = []

    def begin(
        url: str, *, probes: str = "lag_exempt: []", more: str = "", several: str = "", place: str = "processes: 1"
    ) -> Program:
        databases = several or f"database: {{url: '{url}', command_timeout: 15s}}"
        (tmp_path / "probed_app.py").write_text(APP)
        text = CONFIG.format(databases=databases, probes=probes, more=more, place=place)
        (tmp_path / "chokaq.yaml").write_text(text)
        started.append(Program(["-m", "chokaq", "worker"], tmp_path))
        return started[-1]

    yield begin
    for program in started:
        program.destroy()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database file of this test's own."""
    return f"sqlite:///{tmp_path / 'probed.db'}"


def job(queue: str = "work") -> NewJob:
    """One that runs until it is cancelled."""
    return NewJob(id=new_id(), queue=queue, type_key=f"{queue}.wait", payload="{}")


def lag_of(program: Program) -> dict[str, Any]:
    """The check of the lag, as it is now."""
    found: dict[str, Any] = ask(port_of(program), "/healthz")[1]["checks"]["queue_lag"]
    return found


def test_a_paused_queue_with_old_jobs_is_well_and_a_late_one_is_not(
    start: Start, store_options: DatabaseSettings, session: Session, lab: Lab
) -> None:
    program = start(store_options.url)
    found = until(program, "/healthz", 200, BOOT)
    assert found["checks"]["maintenance"]["status"] == "healthy"
    running, late = job(), job()
    session.enqueue_jobs([running])
    wait_until(lambda: session.list_queues()[-1].processing == 1, "the job that fills the worker")
    session.enqueue_jobs([late])
    lab.age(late.id, "DueAtUtc", 7_000)
    program.until(lambda: lag_of(program)["status"] == "degraded", "lag that degrades")
    assert status(port_of(program), "/healthz") == 200
    lab.age(late.id, "DueAtUtc", 60_000)
    found = until(program, "/healthz", 503)
    assert found["checks"]["queue_lag"]["status"] == "unhealthy"
    assert found["checks"]["queue_lag"]["parts"]["work"]["seconds"] > 60
    assert found["checks"]["queue_lag"]["parts"]["other"]["status"] == "healthy"
    assert status(port_of(program), "/readyz") == 200
    session.set_queue("work", QueueChange(paused=True), "dan")
    found = until(program, "/healthz", 200)
    assert found["checks"]["queue_lag"]["status"] == "healthy"
    assert found["checks"]["queue_lag"]["parts"]["work"]["says"].startswith("paused: ")
    session.set_queue("work", QueueChange(paused=False, active=False), "dan")
    program.until(lambda: lag_of(program)["parts"]["work"]["says"].startswith("inactive: "), "the deactivation")
    assert until(program, "/healthz", 200)["checks"]["queue_lag"]["status"] == "healthy"
    assert status(port_of(program), "/readyz") == status(port_of(program), "/livez") == 200


def test_a_worker_lives_through_an_outage_and_is_not_ready_meanwhile(
    start: Start, store_options: DatabaseSettings, session: Session
) -> None:
    """Nothing answers, nothing refuses: of the two stores each hangs in its own way."""
    with Outage(store_options.url) as outage:
        program = start(outage.url)
        until(program, "/readyz", 200, BOOT)
        until(program, "/healthz", 200)
        pids = {event["pid"] for event in program.events("child_ready")}
        outage.begin()
        found = until(program, "/readyz", 503)
        assert found["checks"]["reach"]["status"] == "unhealthy"
        assert found["checks"]["workers"]["status"] == "healthy"
        assert status(port_of(program), "/healthz") == 503
        assert status(port_of(program), "/livez") == 200
        outage.end()
        until(program, "/readyz", 200, BOOT)
        until(program, "/healthz", 200)
        assert {event["pid"] for event in program.events("child_ready")} == pids
        assert not program.events("child_died")
        assert program.end() == 0


class Outage:
    """A database that can be made to hang: behind a proxy that holds everything back, or with its writers' lock held."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._proxy: Proxy | None = None
        self._lock: FileLock | None = None
        parts = urlsplit(url)
        if parts.scheme == "sqlite":
            self._lock = FileLock(Path(f"{url.removeprefix('sqlite:///')}.lock"), 60.0)
            return
        self._proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 1433)
        login = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{self._proxy.port}"))

    def __enter__(self) -> "Outage":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self._lock is not None:
            self._lock.close()

    def begin(self) -> None:
        """From now on whoever writes hangs; on a server whoever reads, too."""
        if self._proxy is not None:
            self._proxy.stall()
        if self._lock is not None:
            self._lock.acquire()

    def end(self) -> None:
        """It answers again."""
        if self._proxy is not None:
            self._proxy.flow()
        if self._lock is not None:
            self._lock.release()


def test_of_several_databases_the_one_that_is_away_is_named(start: Start, tmp_path: Path) -> None:
    places = {name: f"sqlite:///{tmp_path / name}.db" for name in ("main", "archive")}
    program = start(
        "",
        several=f"databases: {{main: '{places['main']}', archive: '{places['archive']}'}}",
        place="database: archive",
    )
    found = until(program, "/healthz", 200, BOOT)
    assert set(found["checks"]["database"]["parts"]) == {"main", "archive"}
    assert set(found["checks"]["queue_lag"]["parts"]) == {"work", "other"}
    assert set(found["checks"]["maintenance"]["parts"]) == {"main", "archive"}
    with Outage(places["archive"]) as outage:
        outage.begin()
        found = until(program, "/readyz", 503)
        assert found["checks"]["reach"]["says"] == "the database does not answer the children of other"
        assert status(port_of(program), "/livez") == 200
        outage.end()
    until(program, "/readyz", 200, BOOT)
    with closing(sqlite3.connect(tmp_path / "archive.db", isolation_level=None, timeout=20)) as connection:
        connection.execute("INSERT INTO SchemaMigrations (Version, Name, AppliedAtUtc) VALUES (9999, '9999_future', 0)")
        found = until(program, "/readyz", 503)
        assert found["checks"]["schema"]["parts"]["main"]["status"] == "healthy"
        assert found["checks"]["schema"]["says"].startswith("archive: ")


def test_a_worker_whose_schema_no_longer_fits_is_not_ready_and_lives(start: Start, url: str, tmp_path: Path) -> None:
    program = start(url)
    until(program, "/readyz", 200, BOOT)
    with closing(sqlite3.connect(tmp_path / "probed.db", isolation_level=None, timeout=20)) as connection:
        connection.execute("INSERT INTO SchemaMigrations (Version, Name, AppliedAtUtc) VALUES (9999, '9999_future', 0)")
        found = until(program, "/readyz", 503)
        assert "version 9999" in found["checks"]["schema"]["says"]
        assert status(port_of(program), "/healthz") == 503
        assert status(port_of(program), "/livez") == 200
        connection.execute("DELETE FROM SchemaMigrations WHERE Version = 9999")
    until(program, "/readyz", 200)
    until(program, "/healthz", 200)


def test_the_deck_and_the_probes_do_not_take_each_other_down(start: Start, url: str) -> None:
    SqliteStore(DatabaseSettings(url=url)).apply_schema()
    program = start(url, more="deck: {enabled: true, port: 0}")
    until(program, "/readyz", 200, BOOT)
    deck_url = urlsplit(program.wait("deck_ready", timeout=BOOT)[-1]["url"])
    [deck] = program.wait("web_forked", serves="deck")
    [probes] = program.wait("web_forked", serves="probes")
    assert status(port_of(program), "/api/overview") == 404
    os.kill(deck["pid"], signal.SIGKILL)
    program.wait("web_died", serves="deck")
    assert status(port_of(program), "/readyz") == 200
    os.kill(probes["pid"], signal.SIGKILL)
    program.wait("web_died", serves="probes")
    until(program, "/readyz", 200)
    later = urlsplit(program.wait("deck_ready", 2, timeout=BOOT)[-1]["url"])
    assert deck_url.hostname == later.hostname
    assert later.port is not None
    assert status(later.port, "/api/overview") == 200
    assert len(program.events("web_died", serves="deck")) == len(program.events("web_died", serves="probes")) == 1
    assert not program.events("supervisor_not_ready")


def test_a_deck_that_cannot_be_served_leaves_the_probes(start: Start, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        program = start(url, more=f"deck: {{enabled: true, port: {taken.getsockname()[1]}}}")
        program.wait("web_died", 2, serves="deck", timeout=BOOT)
        until(program, "/readyz", 200, BOOT)
        assert not program.events("web_died", serves="probes")
        assert program.end() == 0


def test_health_of_the_command_line_asks_the_worker(start: Start, url: str, tmp_path: Path) -> None:
    program = start(url)
    until(program, "/healthz", 200, BOOT)
    port = str(port_of(program))

    def health(*arguments: str) -> subprocess.CompletedProcess[str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("CHOKAQ_")}
        return subprocess.run(
            [sys.executable, "-m", "chokaq", "health", *arguments],
            cwd=tmp_path, env={**plain, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    for options in ([], ["--live"], ["--ready"]):
        done = health("--port", port, *options)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "healthy"), done
    program.send(signal.SIGTERM)
    program.exit_code()
    done = health("--port", port, "--live")
    assert done.returncode == 1
    assert done.stdout.startswith("unreachable: ")
    # The configuration names a free port only: nobody can know which.
    done = health("--live")
    assert done.returncode == 3
    assert "--port" in done.stderr
