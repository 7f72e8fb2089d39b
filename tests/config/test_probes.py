"""What `probes:` may say, and what it may not."""

from pathlib import Path

import pytest

from chokaq.config import ConfigError, load_settings
from chokaq.config.checks import check_settings
from chokaq.config.load import load
from chokaq.config.show import shown_settings


def write(folder: Path, text: str) -> Path:
    """A configuration file."""
    file = folder / "chokaq.yaml"
    file.write_text(text)
    return file


def test_probes_are_off_unless_a_port_is_named(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "queues: {emails: {}}"), {}).probes.port is None
    probes = load_settings(
        write(
            tmp_path,
            "probes: {host: '::', port: 8421, lag_degraded: 1m, lag_unhealthy: null, lag_exempt: [reports], "
            "supervisor_timeout: 20s, heartbeat_timeout: 1m, loop_stalled: 10s, database_timeout: 500ms}",
        ),
        {},
    ).probes
    assert (probes.host, probes.port) == ("::", 8421)
    assert (probes.lag_degraded, probes.lag_unhealthy, probes.lag_exempt) == (60.0, None, ("reports",))
    assert (probes.supervisor_timeout, probes.heartbeat_timeout) == (20.0, 60.0)
    assert (probes.loop_stalled, probes.database_timeout) == (10.0, 0.5)


def test_a_port_may_come_from_a_variable(tmp_path: Path) -> None:
    file = write(tmp_path, "probes: {port: '${PROBES_PORT:-null}'}")
    assert load_settings(file, {}).probes.port is None
    assert load_settings(file, {"PROBES_PORT": "8421"}).probes.port == 8421


@pytest.mark.parametrize(
    ("probes", "path", "message"),
    [
        ("{host: worker.example.com, port: 1}", "probes.host", "must be an address, or localhost"),
        ("{port: 70000}", "probes.port", "from 0 to 65,535 or null"),
        ("{lag_degraded: 10s, lag_unhealthy: 5s}", "probes.lag_unhealthy", "at least lag_degraded (10s)"),
        ("{heartbeat_timeout: 4s}", "probes.heartbeat_timeout", "at least loop_stalled (5s)"),
        ("{supervisor_timeout: 1s}", "probes.supervisor_timeout", "from 3s"),
        ("{lag_exempt: reports}", "probes.lag_exempt", "a list of queue names"),
        ("{lag_warning: 1s}", "probes.lag_warning", "unknown option"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_place(tmp_path: Path, probes: str, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, f"probes: {probes}"), {})

    assert [(problem.path, message in problem.message) for problem in caught.value.problems] == [(path, True)]


def test_probes_and_the_deck_have_ports_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"probes\.port.*The Deck"):
        load_settings(write(tmp_path, "deck: {enabled: true, port: 8421}\nprobes: {port: 8421}"), {})
    load_settings(write(tmp_path, "deck: {port: 8421}\nprobes: {port: 8421}"), {})
    load_settings(write(tmp_path, "deck: {enabled: true, port: 0}\nprobes: {port: 0}"), {})


def test_what_has_no_effect_is_warned_of(tmp_path: Path) -> None:
    settings = load_settings(
        write(tmp_path, "queues: {emails: {stall_limit: 3s}}\nprobes: {port: 0, lag_exempt: [reports]}"), {}
    )
    assert [problem.path for problem in check_settings(settings)] == ["probes.lag_exempt", "probes.loop_stalled"]


def test_every_option_is_shown_with_its_origin(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, "probes:\n  port: 8421\n"), {})
    rows = {row.path: (row.value, row.origin) for row in shown_settings(loaded)}
    assert rows["probes.port"] == ("8421", "chokaq.yaml:2")
    assert rows["probes.lag_unhealthy"] == ("10s", "default")
    assert rows["probes.lag_exempt"] == ("[]", "default")
