"""chokaq.yaml to settings: defaults, overrides, precedence, and every problem at once."""

from pathlib import Path

import msgspec
import pytest

from chokaq.config import ConfigError, Policy, QueueSettings, Settings, load_settings
from chokaq.config.load import load
from chokaq.config.sections import DATABASE, ENVELOPE, MAINTENANCE, POLICY, QUEUE, QUEUE_ALONE, SUPERVISOR
from chokaq.config.settings import EnvelopeSettings, MaintenanceSettings, SupervisorSettings
from chokaq.store.options import DatabaseSettings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "chokaq.yaml") -> Path:
    """A file in the working directory."""
    path = Path.cwd() / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(text: str, environ: dict[str, str] | None = None) -> list[str]:
    """What is wrong with a file, one line each."""
    with pytest.raises(ConfigError) as caught:
        load_settings(write(text), environ or {})
    return [str(problem) for problem in caught.value.problems]


def test_every_setting_has_a_rule_and_every_rule_a_setting() -> None:
    def names(struct: type[msgspec.Struct]) -> set[str]:
        return {field.name for field in msgspec.structs.fields(struct)}

    assert set(POLICY) == names(Policy)
    assert set(QUEUE | QUEUE_ALONE) == names(QueueSettings) - {"name", "policy"}
    assert set(DATABASE) == names(DatabaseSettings)
    assert set(SUPERVISOR) == names(SupervisorSettings)
    assert set(MAINTENANCE) == names(MaintenanceSettings)
    assert set(ENVELOPE) == names(EnvelopeSettings)
    assert not set(POLICY) & set(QUEUE), "a queue's options and the policy's stand side by side in the YAML"


def test_without_a_file_the_defaults_hold_and_sqlite_stands_in_the_working_directory(tmp_path: Path) -> None:
    settings = load_settings(environ={})
    assert settings.database.url == f"sqlite:///{tmp_path}/chokaq.db"
    assert msgspec.structs.replace(settings, database=DatabaseSettings()) == Settings()


def test_the_example_of_the_design_loads() -> None:
    settings = load_settings(
        write(
            """
app: shop.jobs:app
database: ${CHOKAQ_DATABASE_URL:-sqlite:///chokaq.db}
production: false
queues:
  emails:   {max_workers: 20}
  messages: {max_workers: 50, processes: 2}
  reports:  {max_workers: 3, execution_timeout: 1h, zombie_timeout: 40m, fleet_max_workers: 6}
"""
        ),
        {},
    )
    assert settings.app == "shop.jobs:app"
    assert {name: queue.max_workers for name, queue in settings.queues.items()} == {
        "emails": 20,
        "messages": 50,
        "reports": 3,
    }
    reports = settings.queues["reports"]
    assert (reports.policy.execution_timeout, reports.zombie_timeout, reports.fleet_max_workers) == (3600, 2400, 6)


def test_a_type_wins_over_its_queue_and_a_queue_over_the_defaults() -> None:
    settings = load_settings(
        write(
            """
defaults: {max_attempts: 5, execution_timeout: 1m, zombie_timeout: 20m}
queues:
  emails: {execution_timeout: 2m}
  plain:
types:
  Email.Send.V1: {execution_timeout: 3m}
"""
        ),
        {},
    )
    special, other = settings.policy("emails", "EMAIL.send.v1"), settings.policy("emails", "other")
    assert (special.max_attempts, special.execution_timeout) == (5, 180)
    assert (other.max_attempts, other.execution_timeout) == (5, 120)
    assert settings.policy("plain", "other").execution_timeout == 60
    assert settings.queues["emails"].zombie_timeout == 1200
    assert settings.queue("unnamed") == QueueSettings(name="unnamed", zombie_timeout=1200, policy=settings.defaults)
    assert settings.policy("unnamed", "other").max_attempts == 5


def test_circuits_are_set_for_all_per_queue_and_per_type() -> None:
    settings = load_settings(
        write(
            """
defaults: {circuit_failures: 9, circuit_delay: 500ms}
queues:
  emails: {circuit_open: 1m, circuit_probes: 2}
types:
  email.send.v1: {circuit: false, circuit_window: 2m, circuit_probe_timeout: 90s}
"""
        ),
        {},
    )
    queue, special = settings.policy("emails", "other"), settings.policy("emails", "email.send.v1")
    assert (queue.circuit, queue.circuit_failures, queue.circuit_open, queue.circuit_probes) == (True, 9, 60, 2)
    assert (special.circuit, special.circuit_failures, special.circuit_window) == (False, 9, 120)
    assert (special.circuit_open, special.circuit_probe_timeout, special.circuit_delay) == (60, 90, 0.5)
    plain = settings.policy("unnamed", "other")
    assert (plain.circuit_open, plain.circuit_probes, plain.circuit_window) == (30, 1, 60)


def test_null_lifts_a_limit() -> None:
    settings = load_settings(write("queues: {q: {execution_timeout: null, archive_retention: ~, max_job_age: }}"), {})
    queue = settings.queues["q"]
    assert (queue.policy.execution_timeout, queue.archive_retention, queue.policy.max_job_age) == (None, None, None)


def test_all_problems_are_told_at_once_with_path_and_line() -> None:
    assert problems(
        """
queues:
  emails: {max_wokers: 20, poll_min: 3s}
  reports: {max_workers: 0, execution_timeout: soon, shutdown_grace: 5}
types:
  email.send.v1: {max_attempts: -1}
supervisr: {}
log_level: loud
production: maybe
app: shop.jobs
"""
    ) == [
        "queues.emails.max_wokers: unknown option; did you mean max_workers? (line 3)",
        "queues.reports.max_workers: must be a whole number from 1 to 10,000, got 0 (line 4)",
        "queues.reports.execution_timeout: must be a duration like 1h30m, 15s or 500ms from 1ms on or null, got 'soon' (line 4)",
        "queues.reports.shutdown_grace: unknown option here; it belongs under supervisor (line 4)",
        'types["email.send.v1"].max_attempts: must be a whole number from 1 to 10,000, got -1 (line 6)',
        "supervisr: unknown option; did you mean supervisor? (line 7)",
        "log_level: must be debug, info, warning, error or critical, got 'loud' (line 8)",
        "production: must be true or false, got 'maybe' (line 9)",
        "app: must be package.module:attribute or null, got 'shop.jobs' (line 10)",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queues: {q: {poll_min: 2s, poll_max: 1s}}", "queues.q.poll_max: must be at least poll_min (2s), got 1s"),
        ("queues: {q: {poll_min: 2s}}", "queues.q.poll_max: must be at least poll_min (2s), got 1s"),
        (
            "queues: {q: {retry_base_delay: 2h}}",
            "queues.q.retry_max_delay: must be at least retry_base_delay (2h), got 1h",
        ),
        (
            "types: {t: {retry_max_delay: 1s}}",
            "types.t.retry_max_delay: must be at least retry_base_delay (3s), got 1s",
        ),
        ("defaults: {retry_max_delay: 1s}", "defaults.retry_max_delay: must be at least retry_base_delay (3s), got 1s"),
        (
            "queues: {q: {fleet_max_workers: 0}}",
            "queues.q.fleet_max_workers: must be a whole number from 1 to 100,000 or null",
        ),
        ("supervisor: {respawn_max: 100ms}", "supervisor.respawn_max: must be at least respawn_min (500ms), got 100ms"),
        ("queues: {q: {zombie_timeout: 9s}}", "queues.q.zombie_timeout: must be at least heartbeat (10s), got 9s"),
        ("queues: {q: {fetched_timeout: 9s}}", "queues.q.fetched_timeout: must be at least heartbeat (10s), got 9s"),
        ("defaults: {heartbeat: 15m}", "defaults.fetched_timeout: must be at least heartbeat (15m), got 10m"),
        ("defaults: {hard_limit_grace: 999ms}", "defaults.hard_limit_grace: must be a duration"),
        ("production: true", "database.url: production: true refuses SQLite"),
        ("database: {url: 'oracle://h/d'}", "database.url: `oracle` is not a store"),
        ("database: mssql://h/d", "database.url: names no login"),
        ("database: 5", "database: must be a URL"),
        ("database: {schema: 'a-b'}", "database.schema: must be a plain name"),
        ("envelope: {max_payload_bytes: 2MB}", "envelope.max_payload_bytes: must be a size"),
    ],
)
def test_values_that_cannot_work_together_are_refused(text: str, message: str) -> None:
    assert problems(text)[0].startswith(message)


def test_a_combination_inherited_from_the_defaults_is_told_once() -> None:
    assert len(problems("defaults: {retry_max_delay: 1s}\nqueues: {a: {}, b: {}}\ntypes: {t: {max_attempts: 2}}")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", "not valid YAML"),
        ("- a", "must hold a mapping"),
        ("{a: 1}\n---\n{b: 2}", "not valid YAML"),
        ("queues: [emails]", "queues: must be a mapping of options, got a list"),
        ("queues: {emails: 5}", "queues.emails: must be a mapping of options, got 5"),
        ("queues:\n  q: {}\n  q: {}\n", "queues.q: given twice (first on line 2) (line 3)"),
        ("queues: {1: {}}", "queues: a key must be text, got 1"),
        ("queues: {' q': {}}", 'queues[" q"]: a queue\'s name is'),
        ("queues: {'ü': {}}", "queues.ü: a queue's name is"),
        ("types: {a: {}, A: {}}", "types.A: given twice"),
        ("app: !!python/object/apply:os.system ['true']", "app: the tag tag:yaml.org,2002:python"),
        ("app: !mine x", "app: the tag !mine is not understood"),
        ("app: &a [*a]", "aliases repeat"),
        ("queues: {q: {poll_min: 1:30}}", "queues.q.poll_min: must be a duration"),
        ("queues: {q: {processes: true}}", "queues.q.processes: must be a whole number from 1 to 256, got true"),
        ("queues: {q: {max_memory: 1MB}}", "queues.q.max_memory: must be a size"),
        ("queues: {q: {max_memory: 99999999999999999999999TB}}", "queues.q.max_memory: must be a size"),
        ("defaults: {name: x}", "defaults.name: unknown option"),
        ("queues: {q: {policy: {}}}", "queues.q.policy: unknown option"),
    ],
)
def test_bad_yaml_is_one_clear_message(text: str, message: str) -> None:
    found = problems(text)
    assert any(message in line for line in found), found
    assert len(found) == 1


def test_options_can_be_shared_by_an_anchor() -> None:
    settings = load_settings(
        write("queues:\n  a: &base {max_workers: 3, processes: 2}\n  b: {<<: *base, processes: 4}\n"), {}
    )
    assert [(q.max_workers, q.processes) for q in settings.queues.values()] == [(3, 2), (3, 4)]


def test_a_problem_in_a_merged_option_is_found() -> None:
    assert len(problems("queues:\n  b:\n    <<: {max_workers: 0}\n")) == 1


def test_the_argument_wins_over_the_environment_and_that_over_the_working_directory(tmp_path: Path) -> None:
    write("log_level: debug")
    named, other = write("log_level: error", "named.yaml"), write("log_level: warning", "other.yaml")
    assert load_settings(environ={}).log_level == "debug"
    assert load_settings(environ={"CHOKAQ_CONFIG": str(named)}).log_level == "error"
    assert load_settings(other, {"CHOKAQ_CONFIG": str(named)}).log_level == "warning"
    assert load_settings(Path("other.yaml"), {}).source == tmp_path / "other.yaml"


def test_the_environment_wins_over_the_file_and_origins_tell() -> None:
    path = write("app: a.b:c\ndatabase: mssql://u:p@h/d\nlog_level: debug\nqueues: {q: {max_workers: 2}}")
    loaded = load(
        path, {"CHOKAQ_DATABASE_URL": "sqlite:////x/y.db", "CHOKAQ_APP": "d.e:f", "CHOKAQ_LOG_FORMAT": "json"}
    )
    settings = loaded.settings
    assert (settings.app, settings.database.url, settings.log_level, settings.log_format) == (
        "d.e:f",
        "sqlite:////x/y.db",
        "debug",
        "json",
    )
    assert loaded.origins == {
        "app": "$CHOKAQ_APP",
        "database.url": "$CHOKAQ_DATABASE_URL",
        "log_format": "$CHOKAQ_LOG_FORMAT",
        "log_level": "chokaq.yaml:3",
        "queues.q.max_workers": "chokaq.yaml:4",
    }


def test_a_bad_environment_variable_is_named() -> None:
    assert problems("{}", {"CHOKAQ_LOG_LEVEL": "loud"}) == [
        "$CHOKAQ_LOG_LEVEL: must be debug, info, warning, error or critical, got 'loud'"
    ]


def test_a_relative_sqlite_path_stands_beside_the_file_and_one_from_the_environment_in_the_working_directory(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "etc with % space"
    folder.mkdir()
    path = folder / "c.yaml"
    path.write_text("database: {url: 'sqlite:///./data/q.db', retries: 5}")
    from chokaq.store.url import DatabaseUrl

    settings = load_settings(path, {})
    assert DatabaseUrl.parse(settings.database.url).path == str(folder / "data" / "q.db")
    assert settings.database.retries == 5
    inherited = load_settings(path, {"CHOKAQ_DATABASE_URL": "sqlite:///q.db"})
    assert DatabaseUrl.parse(inherited.database.url).path == str(tmp_path / "q.db")


@pytest.mark.parametrize("environ", [True, False])
def test_a_named_file_that_does_not_exist_is_an_error_with_a_way_out(environ: bool) -> None:
    with pytest.raises(ConfigError, match="does not exist; `chokaq config --example") as caught:
        load_settings(None if environ else Path("no.yaml"), {"CHOKAQ_CONFIG": "no.yaml"} if environ else {})
    assert ("$CHOKAQ_CONFIG" in str(caught.value)) == environ


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_settings(path, {})
    with pytest.raises(ConfigError, match="is a folder"):
        load_settings(tmp_path, {})
