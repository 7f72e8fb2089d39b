"""`idempotency:` and `redact:`: read, checked against each other, shown."""

from pathlib import Path

import pytest

from chokaq.config import ConfigError, load_settings
from chokaq.config.load import load
from chokaq.config.sections import IDEMPOTENCY
from chokaq.config.settings import IdempotencySettings
from chokaq.config.show import shown_settings

LINES = r"""
redact:
  - '4\d{3}-?\d{4}'
  - "sk_${NAME}_[a-z]+"
idempotency: {in_progress_ttl: 10m, result_ttl: 1d, min_result_ttl: 1m, max_result_ttl: 30d, busy_delay: 500ms}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "chokaq.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_they_are_read_with_variables_filled_in(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, LINES), {"NAME": "live"})
    assert settings.redact == (r"4\d{3}-?\d{4}", "sk_live_[a-z]+")
    assert settings.idempotency == IdempotencySettings(
        in_progress_ttl=600.0, result_ttl=86_400.0, min_result_ttl=60.0, max_result_ttl=30 * 86_400.0, busy_delay=0.5
    )


def test_every_option_of_the_middleware_has_a_rule() -> None:
    assert set(IDEMPOTENCY) == set(IdempotencySettings.__struct_fields__)


def test_they_are_shown_as_they_can_be_written(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, "redact: [\"it's\", 'b.c']\nidempotency: {result_ttl: null}\n"), {})
    shown = {row.path: row.value for row in shown_settings(loaded)}
    assert shown["redact"] == "['it''s', 'b.c']"
    assert (shown["idempotency.result_ttl"], shown["idempotency.busy_delay"]) == ("null", "15s")
    again = load_settings(write(tmp_path, f"redact: {shown['redact']}\n"), {})
    assert again.redact == ("it's", "b.c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("redact: ['a', '(b']", r"redact: \[1\] '\(b' is not a regular expression: missing \)"),
        ("redact: ['x*']", r"redact: \[0\] 'x\*' matches the empty text"),
        ("redact: secret", r"redact: must be a list of regular expressions, got 'secret'"),
        ("redact: ['']", r"redact: must be a list of regular expressions, got a list"),
        ("redact: [5]", r"redact: must be a list of regular expressions, got a list"),
        ("redact: ['${NOBODY}']", r"NOBODY"),
        ("idempotency: {result_tl: 5}", r"idempotency.result_tl: unknown option; did you mean result_ttl\?"),
        ("idempotency: {in_progress_ttl: 0}", "idempotency.in_progress_ttl: must be a duration"),
        ("idempotency: {min_result_ttl: 2h, max_result_ttl: 1h}", "max_result_ttl: must be at least min_result_ttl"),
        ("idempotency: {min_result_ttl: 8d}", r"result_ttl: must be at least min_result_ttl \(8d\), got 7d"),
        ("idempotency: {max_result_ttl: 1d}", r"result_ttl: must be at most max_result_ttl \(1d\), got 7d"),
        ("idempotency: {result_ttl: null, max_result_ttl: 1d}", r"got null \(for ever\)"),
        ("defaults: {busy_delay: 5s}", "it belongs under idempotency"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_message(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(write(tmp_path, text + "\n"), {})
