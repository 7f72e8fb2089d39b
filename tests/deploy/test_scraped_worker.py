"""A real Prometheus with the shipped rules scrapes a real worker, and asks for its health through a real blackbox exporter.

What promtool cannot know is seen here: that the worker exports what the rules and the dashboard ask for, under these labels, and
that no expression fails on figures as they are.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from chokaq.store.options import DatabaseSettings
from chokaq.store.records import NewJob
from chokaq.store.sqlite import SqliteStore
from tests.support.ids import new_id
from tests.support.polling import wait_until
from tests.support.supervised import Program

from .files import document
from .prometheus import FOLDER, RULES, alerts
from .promql import TARGET, exported
from .servers import Server, running
from .test_dashboard import expressions, filled

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.timeout(300)]
BOOT = 90.0
APP = """
import os
from chokaq import ChokaQ

app = ChokaQ()
for key in ("mail.send", "mail.break", "mail.die"):
    app.job(key, dict, queue="emails")


@app.handler("mail.send")
async def send(job: dict[str, object]) -> None: ...


@app.handler("mail.break")
async def stop(job: dict[str, object]) -> None:
    raise TypeError("this one is broken")


@app.handler("mail.die")
async def die(job: dict[str, object]) -> None:
    os._exit(9)
"""
CONFIG = """
app: scraped_app:app
database: sqlite:///{folder}/chokaq.db
log_format: json
queues:
  emails: {{max_workers: 5, heartbeat: 1s, poll_max: 100ms}}
supervisor: {{shutdown_grace: 10s, respawn_min: 50ms, respawn_max: 200ms}}
metrics: {{fleet_interval: 1s}}
probes: {{host: 127.0.0.1, port: 0}}
"""
FAST = {"interval: 1m": "interval: 1s", "for: ": "for: 0s # "}
"""The rules as they are, recorded every second and without patience."""


class Watched(NamedTuple):
    """A worker, and who looks at it."""

    worker: Program
    prometheus: Server
    folder: Path

    def value(self, expression: str) -> float | None:
        """The largest value of an expression now; None: there is none."""
        found = self.prometheus.ask("/api/v1/query", query=expression)["result"]
        return max((float(each["value"][1]) for each in found), default=None)

    def until(self, condition: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
        """Wait for something that Prometheus shows."""
        try:
            wait_until(condition, what, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.worker.tail()}\n{self.prometheus.said()}") from None

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """Alerts that fire now: the labels of each, by name."""
        told: dict[str, list[dict[str, str]]] = {}
        for alert in self.prometheus.ask("/api/v1/alerts")["alerts"]:
            if alert["state"] == "firing":
                told.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return told

    def enqueue(self, **counts: int) -> None:
        """So many jobs of `mail.NAME`."""
        with closing(SqliteStore(DatabaseSettings(url=f"sqlite:///{self.folder / 'chokaq.db'}")).session()) as session:
            session.enqueue_jobs(
                [
                    NewJob(id=new_id(), queue="emails", type_key=f"mail.{name}", payload="{}")
                    for name, count in counts.items()
                    for _ in range(count)
                ]
            )


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The worker has done jobs of every kind, with scrapes in between: counters have moved."""
    folder = tmp_path_factory.mktemp("scraped")
    exporter = ("--config.file", str(FOLDER / "blackbox.yml"))
    with running("prometheus-blackbox-exporter", folder, *exporter) as blackbox:
        (folder / "scraped_app.py").write_text(APP)
        (folder / "chokaq.yaml").write_text(CONFIG.format(folder=folder))
        worker = Program(["-m", "chokaq", "worker"], folder)
        try:
            port = int(worker.wait("probes_listening", timeout=BOOT)[-1]["port"])
            configure(folder, f"127.0.0.1:{port}", blackbox.address)
            with running(
                "prometheus", folder, "--config.file=prometheus.yml", "--storage.tsdb.path=data"
            ) as prometheus:
                made = Watched(worker, prometheus, folder)
                made.until(lambda: made.value("chokaq_ready") == 1, "a worker that is ready", BOOT)
                crashed = 'chokaq_child_restarts_total{cause="crash"}'
                dead = 'sum(chokaq_jobs_dlq_total{reason="FatalError"})'
                made.enqueue(send=20, **{"break": 1})
                made.until(lambda: made.value(dead) == 1, "the first broken job")
                # Alone: a crash takes along what runs beside.
                made.enqueue(die=1)
                made.until(lambda: made.value(crashed) == 1, "the first crash")
                made.enqueue(die=1)
                made.until(lambda: made.value(crashed) == 2, "the second crash")
                made.enqueue(send=20, **{"break": 40})
                made.until(lambda: made.value(dead) == 41, "all broken jobs")
                yield made
        finally:
            worker.destroy()


def configure(folder: Path, worker: str, blackbox: str) -> None:
    """The shipped configuration with real addresses, and a second for what takes a minute."""
    (folder / "rules").mkdir()
    for file in RULES:
        text = file.read_text(encoding="utf-8")
        for slow, fast in FAST.items():
            text = text.replace(slow, fast)
        (folder / "rules" / file.name).write_text(text, encoding="utf-8")
    config = document(FOLDER / "prometheus.yml")
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    del config["alerting"]
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    del jobs["shop-web"]
    for name, job in jobs.items():
        job.pop("scrape_interval", None)
        probed = name in ("chokaq-health", "chokaq-schema")
        job["static_configs"] = [{"targets": [f"http://{worker}/healthz" if probed else worker]}]
        for relabelling in job.get("relabel_configs", []):
            if relabelling.get("target_label") == "__address__":
                relabelling["replacement"] = blackbox
    config["scrape_configs"] = list(jobs.values())
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")


def test_alerts_fire_for_what_has_really_happened(watched: Watched) -> None:
    expected = {"ChokaqFatalSpike", "ChokaqDlqRate", "ChokaqZombies", "ChokaqChildCrashed"}
    watched.until(lambda: expected <= set(watched.firing()), f"{expected} to fire, not {set(watched.firing())}")
    for name in expected:
        for labels in watched.firing()[name]:
            assert labels["queue"] == "emails"
            assert labels["job"] == "chokaq"
    assert {labels["cause"] for labels in watched.firing()["ChokaqChildCrashed"]} == {"crash"}
    assert {labels["reason"] for labels in watched.firing()["ChokaqZombies"]} == {"Zombie"}


def test_alerts_are_silent_about_what_is_well(watched: Watched) -> None:
    well = {
        "ChokaqNoMetrics",
        "ChokaqTargetDown",
        "ChokaqNoLeader",
        "ChokaqDatabaseOutage",
        "ChokaqSchemaMismatch",
        "ChokaqQueueWithoutWorker",
        "ChokaqQueueLag",
    }
    watched.until(lambda: watched.value("max(chokaq_leader)") == 1, "a leader")
    # Without patience some of them fire for a second after a crash.
    watched.until(lambda: not well & set(watched.firing()), f"none of {well} to fire")


def test_no_rule_fails_on_real_figures(watched: Watched) -> None:
    def groups() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = watched.prometheus.ask("/api/v1/rules")["groups"]
        return found

    watched.until(
        lambda: all(rule["health"] != "unknown" for group in groups() for rule in group["rules"]), "every rule to run"
    )
    rules = [rule for group in groups() for rule in group["rules"]]
    assert {rule["name"] for rule in rules if rule["type"] == "alerting"} == {alert.name for alert in alerts()}
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []


def test_what_a_worker_exports_is_what_rules_and_dashboard_were_written_for(watched: Watched) -> None:
    known = exported()
    found = watched.prometheus.ask("/api/v1/series", **{"match[]": '{__name__=~"chokaq_.+"}'})
    names = {labels["__name__"] for labels in found}
    assert len(names) > 30
    for labels in found:
        assert set(labels) - {"__name__"} == known[labels["__name__"]] | TARGET, labels


def test_no_panel_of_the_dashboard_fails_and_most_show_something(watched: Watched) -> None:
    empty = []
    for title, expression in expressions():
        result = watched.prometheus.ask("/api/v1/query", query=filled(expression))["result"]
        if not result:
            empty.append(title)
    assert len(empty) < len(expressions()) / 2, empty
    assert not {
        "Workers ready",
        "Longest wait now",
        "Completed per second",
        "To the DLQ",
        "Handlers",
        "Calls, p95",
    } & set(empty)


def test_health_is_asked_through_the_blackbox_exporter_and_a_wrong_schema_is_seen(watched: Watched) -> None:
    health, schema = 'probe_success{job="chokaq-health"}', 'probe_success{job="chokaq-schema"}'
    watched.until(lambda: watched.value(health) == 1 and watched.value(schema) == 1, "a worker that is well")
    with closing(sqlite3.connect(watched.folder / "chokaq.db", isolation_level=None, timeout=20)) as connection:
        connection.execute("INSERT INTO SchemaMigrations (Version, Name, AppliedAtUtc) VALUES (9999, '9999_future', 0)")
        watched.until(lambda: "ChokaqSchemaMismatch" in watched.firing(), "the schema to be told of")
        watched.until(lambda: watched.value(health) == 0, "its health to say so, too")
        connection.execute("DELETE FROM SchemaMigrations WHERE Version = 9999")
    watched.until(lambda: watched.value(health) == 1 and watched.value(schema) == 1, "a worker that is well again")


def test_a_worker_that_has_ended_is_missed(watched: Watched) -> None:
    assert watched.worker.end() == 0
    expected = {"ChokaqTargetDown", "ChokaqNoMetrics"}
    watched.until(lambda: expected <= set(watched.firing()), f"{expected} to fire, not {set(watched.firing())}")
    assert {labels["instance"] for labels in watched.firing()["ChokaqTargetDown"]} == {
        watched.prometheus.ask("/api/v1/targets")["activeTargets"][0]["labels"]["instance"]
    }
