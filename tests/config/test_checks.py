"""Warnings: settings that are allowed and contradict each other."""

import sys
from pathlib import Path

import pytest

from chokaq.config import ConfigError, load_settings
from chokaq.config.application import AppFacts
from chokaq.config.checks import check_application, check_environment, check_settings
from chokaq.config.settings import Settings

FACTS = AppFacts(
    queues=["emails", "stream"],
    jobs={"email.send.v1": "emails", "raw.v1": "stream"},
    handled=["email.send.v1"],
    pipes=["stream"],
)


def settings(tmp_path: Path, text: str) -> Settings:
    """The settings of a text."""
    path = tmp_path / "chokaq.yaml"
    path.write_text(text)
    return load_settings(path, {})


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("queues: {q: {zombie_timeout: 10s}}", "queues.q.zombie_timeout", "under three heartbeats"),
        ("queues: {q: {zombie_timeout: 29s}}", "queues.q.zombie_timeout", "under three heartbeats"),
        ("queues: {q: {fetched_timeout: 29s}}", "queues.q.fetched_timeout", "under three heartbeats"),
        ("defaults: {zombie_timeout: 29s}", "defaults.zombie_timeout", "under three heartbeats"),
        ("queues: {q: {execution_timeout: 2d}}", "queues.q.execution_timeout", "above max_job_age (1d)"),
        ("types: {t: {execution_timeout: 2d}}", "types.t.execution_timeout", "above max_job_age (1d)"),
        ("defaults: {max_job_age: 5m}", "defaults.execution_timeout", "above max_job_age (5m)"),
        (
            "defaults: {max_job_age: 2s, execution_timeout: 1s, circuit: false}",
            "defaults.retry_base_delay",
            "no job is ever retried",
        ),
        (
            "defaults: {max_job_age: 20s, execution_timeout: 1s}",
            "defaults.circuit_open",
            "30s is above max_job_age (20s): a job that meets an open circuit is too old",
        ),
        (
            "types: {t: {max_job_age: 40s, execution_timeout: 1s, circuit_delay: 50s}}",
            "types.t.circuit_delay",
            "50s is above max_job_age (40s)",
        ),
        (
            "queues: {q: {fleet_max_workers: 5}}",
            "queues.q.fleet_max_workers",
            "below what one worker alone could run (50",
        ),
        ("queues: {q: {poll_max: 1m}}", "queues.q.poll_max", "how late an idle child"),
        ("queues: {q: {max_attempts: 1, on_crash: retry}}", "queues.q.on_crash", "no effect"),
        ("queues: {q: {crash_limit: 1, on_crash: retry}}", "queues.q.crash_limit", "no effect"),
        ("supervisor: {shutdown_grace: 4s}", "supervisor.shutdown_grace", "under 5s"),
        ("supervisor: {boot_timeout: 10s}", "supervisor.boot_timeout", "below database.connect_timeout"),
        ("database: {lock_timeout: 30s}", "database.lock_timeout", "not below command_timeout"),
        (
            "queues: {q: {}}\nmaintenance: {rescue_interval: 1h}",
            "maintenance.rescue_interval",
            "shortest zombie_timeout (10m)",
        ),
    ],
)
def test_a_contradiction_is_warned_about_at_its_path(tmp_path: Path, text: str, path: str, words: str) -> None:
    """C5: first of all those that would hand a running job to a second worker."""
    found = check_settings(settings(tmp_path, text))
    assert {problem.path for problem in found} - {"maintenance.rescue_interval"} <= {path}
    assert found[0].path == path
    assert words in found[0].message


def test_the_defaults_contradict_nothing(tmp_path: Path) -> None:
    assert check_settings(settings(tmp_path, "queues: {a: {}, b: {processes: 2}}\ntypes: {t: {}}")) == []


def test_what_the_application_and_the_yaml_do_not_agree_on(tmp_path: Path) -> None:
    text = "queues: {emails: {}, idle: {}}\ntypes: {emial.send.v1: {}, email.send.v1: {}}"
    facts = AppFacts(
        queues=["emails", "reports"],
        jobs={"email.send.v1": "emails", "report.v1": "reports"},
        handled=["report.v1"],
        strays=["handler shop.lost is for Lost, which is not registered"],
    )
    assert [str(problem) for problem in check_application(settings(tmp_path, text), facts)] == [
        "queues.idle: no job and no pipe of the application goes to this queue",
        "queues: jobs of report.v1 go to the queue reports, which this worker does not serve",
        "app: the job type email.send.v1 has no handler: its jobs will end as FatalError",
        "app: handler shop.lost is for Lost, which is not registered",
        'types["emial.send.v1"]: the application has no such job type; did you mean email.send.v1?',
    ]


def test_a_pipe_needs_no_handler_per_type_and_empty_queues_serve_all(tmp_path: Path) -> None:
    assert check_application(settings(tmp_path, "types: {any.thing: {}}"), FACTS) == []


def test_a_misspelt_environment_variable_is_noticed() -> None:
    environ = {"CHOKAQ_DATABSE_URL": "x", "CHOKAQ_APP": "a:b", "CHOKAQ_TEST_SQLSERVER": "x", "HOME": "/"}
    assert [problem.path for problem in check_environment(environ)] == ["$CHOKAQ_DATABSE_URL"]


def test_tracing_without_its_packages_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on = settings(tmp_path, "tracing: {enabled: true}")
    assert check_settings(on) == []
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)  # type: ignore[arg-type]
    [warning] = check_settings(on)
    assert (warning.path, "pip install 'chokaq[otel]'" in warning.message) == ("tracing.enabled", True)
    assert check_settings(settings(tmp_path, "tracing: {enabled: false}")) == []


def test_a_relation_nobody_knows_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tracing\.relation.*must be link or child|tracing\.relation"):
        settings(tmp_path, "tracing: {enabled: true, relation: sibling}\nlog_repeats: 0\n")
