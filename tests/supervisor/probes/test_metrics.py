"""/metrics of real workers: every process in it, as Prometheus reads it; and nothing of it when it is switched off."""

import os
import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import NewJob
from tests.support.ids import new_id
from tests.support.supervised import Program

from .asking import port_of, status, until

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]
APP = """
from typing import Any
from chokaq import ChokaQ, FatalError

app = ChokaQ()
app.job("work.v1", dict, queue="work")


@app.handler("work.v1")
async def work(job: dict[str, Any]) -> None:
    if job.get("again"):
        await app.enqueue("work.v1", {})
    if job.get("fatal"):
        raise FatalError("no")
"""
CONFIG = """
app: counted_app:app
database: {{url: '{url}', command_timeout: 15s}}
log_format: json
queues: {{work: {{max_workers: 2, heartbeat: 1s}}}}
supervisor: {{shutdown_grace: 10s, respawn_min: 50ms, respawn_max: 200ms}}
probes: {{port: 0}}
metrics: {{directory: figures, fleet_interval: 1s, {metrics}}}
"""
Sample = tuple[str, frozenset[tuple[str, str]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Start a worker: `start(url, "enabled: false")`."""
    started: list[Program] = []

    def begin(url: str, metrics: str = "enabled: true") -> Program:
        (tmp_path / "figures").mkdir()
        (tmp_path / "counted_app.py").write_text(APP)
        (tmp_path / "chokaq.yaml").write_text(CONFIG.format(url=url, metrics=metrics))
        started.append(Program(["-m", "chokaq", "worker"], tmp_path))
        return started[-1]

    yield begin
    for program in started:
        program.destroy()


def scrape(port: int) -> dict[Sample, float]:
    """What Prometheus makes of an answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def job(payload: str = "{}") -> NewJob:
    return NewJob(id=new_id(), queue="work", type_key="work.v1", payload=payload)


def test_one_scrape_shows_children_maintenance_and_supervisor(
    start: Callable[..., Program], store_options: DatabaseSettings, session: Session, tmp_path: Path
) -> None:
    program = start(store_options.url)
    until(program, "/readyz", 200, 90.0)
    port = port_of(program)
    session.enqueue_jobs([job(), job('{"again": true}'), job('{"fatal": true}')])

    def count(name: str, **labels: str) -> float | None:
        return scrape(port).get((f"chokaq_{name}", frozenset(labels.items())))

    of_type = {"queue": "work", "type": "work.v1"}
    program.until(lambda: count("jobs_completed_total", **of_type) == 3, "three successes")
    program.until(lambda: count("jobs_dlq_total", **of_type, reason="FatalError") == 1, "one dead letter")
    assert count("jobs_enqueued_total", **of_type) == 1
    assert count("jobs_queue_lag_seconds_count", **of_type) == 4
    program.until(lambda: count("workers_active", queue="work") == 1, "the leader's figures")
    assert count("queue_jobs", queue="work", state="pending") == 0
    assert count("leader", database="main") == 1
    assert count("ready") == 1
    assert count("children", queue="work", state="ready") == 1
    # A killed child takes nothing of it along, and its successor counts on.
    os.kill(program.wait("child_ready")[-1]["pid"], signal.SIGKILL)
    program.wait("child_ready", 2)
    program.until(lambda: count("child_restarts_total", queue="work", cause="crash") == 1, "the restart")
    session.enqueue_jobs([job()])
    program.until(lambda: count("jobs_completed_total", **of_type) == 4, "one more")
    assert program.end() == 0
    assert list((tmp_path / "figures").iterdir()) == []


def test_switched_off_there_is_no_such_path_and_no_file(
    start: Callable[..., Program], store_options: DatabaseSettings, tmp_path: Path
) -> None:
    program = start(store_options.url, "enabled: false")
    until(program, "/readyz", 200, 90.0)
    assert status(port_of(program), "/metrics") == 404
    assert list((tmp_path / "figures").iterdir()) == []
    assert program.end() == 0
