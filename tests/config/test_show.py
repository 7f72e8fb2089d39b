"""The settings in force, as people read them."""

from pathlib import Path

from chokaq.config.load import load
from chokaq.config.show import redacted, shown_settings


def test_every_option_is_shown_with_its_origin_and_no_password(tmp_path: Path) -> None:
    path = tmp_path / "chokaq.yaml"
    path.write_text(
        "database: mssql://sa:hunter2@h/d\n"
        "defaults: {zombie_timeout: 40m}\n"
        "queues: {emails: {max_workers: 20, execution_timeout: 1h}}\n"
        "types: {email.send.v1: {max_attempts: 5}}\n"
    )
    loaded = load(path, {"CHOKAQ_LOG_LEVEL": "debug"})
    rows = {row.path: (row.value, row.origin) for row in shown_settings(loaded)}
    assert rows["database.url"] == ("mssql://sa:***@h/d", "chokaq.yaml:1")
    assert rows["log_level"] == ("debug", "$CHOKAQ_LOG_LEVEL")
    assert rows["queues.emails.max_workers"] == ("20", "chokaq.yaml:3")
    assert rows["queues.emails.execution_timeout"] == ("1h", "chokaq.yaml:3")
    assert rows["queues.emails.zombie_timeout"] == ("40m", "chokaq.yaml:2")
    assert rows["queues.emails.processes"] == ("1", "default")
    assert rows['types["email.send.v1"].max_attempts'] == ("5", "chokaq.yaml:4")
    assert rows["supervisor.shutdown_grace"] == ("30s", "default")
    assert "hunter2" not in repr(redacted(loaded.settings))
