"""`metrics:`: read, checked, shown."""

from pathlib import Path

import pytest

from chokaq.config import ConfigError, load_settings
from chokaq.config.load import load
from chokaq.config.sections import METRICS
from chokaq.config.show import shown_settings
from chokaq.observe.metrics import MetricsSettings

LINES = """
metrics:
  enabled: false
  directory: ${WHERE}
  fleet_interval: 1m
  max_queues: 1
  max_types: 2
  max_errors: 3
  max_reasons: 4
  max_value_length: 5
  unknown_value: none
  overflow_value: rest
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "chokaq.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_they_are_read(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, LINES), {"WHERE": "/run/figures"})
    assert settings.metrics == MetricsSettings(
        enabled=False,
        directory="/run/figures",
        fleet_interval=60.0,
        max_queues=1,
        max_types=2,
        max_errors=3,
        max_reasons=4,
        max_value_length=5,
        unknown_value="none",
        overflow_value="rest",
    )


def test_every_option_has_a_rule() -> None:
    assert set(METRICS) == set(MetricsSettings.__struct_fields__)


def test_a_relative_folder_stands_beside_the_file(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, "metrics: {directory: figures}"), {})
    assert settings.metrics.directory == str(tmp_path / "figures")


def test_they_are_shown(tmp_path: Path) -> None:
    shown = {row.path: row for row in shown_settings(load(write(tmp_path, "metrics:\n  max_types: 7\n"), {}))}
    assert (shown["metrics.max_types"].value, shown["metrics.max_types"].origin) == ("7", "chokaq.yaml:2")
    assert (shown["metrics.directory"].value, shown["metrics.fleet_interval"].value) == ("null", "15s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics: {max_typs: 5}", r"metrics.max_typs: unknown option; did you mean max_types\?"),
        ("metrics: {max_types: 0}", "metrics.max_types: must be a whole number from 1 to 10,000, got 0"),
        ("metrics: {fleet_interval: 0.5}", "metrics.fleet_interval: must be a duration"),
        ("metrics: {directory: ' '}", "metrics.directory: must be the path of a folder"),
        ("metrics: {unknown_value: ''}", "metrics.unknown_value: must be 1 to 1,000 printable characters"),
        (
            "metrics: {unknown_value: other}",
            r"metrics.overflow_value: must not be the same as unknown_value \('other'\)",
        ),
        ("metrics: {max_value_length: 6}", r"unknown_value: has 7 characters, more than max_value_length \(6\) allows"),
        ("defaults: {max_reasons: 5}", "it belongs under metrics"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_message(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(write(tmp_path, text + "\n"), {})
