"""Every alert fires when it should, stays silent when it should, and is right when figures are missing (tests/deploy/alerts)."""

import re
from pathlib import Path
from typing import Any

import pytest

from .files import document
from .prometheus import CASES, LIMITS, Alert, alerts, run, sources
from .promql import FOREIGN, exported

ALERTS = alerts()
NAME = re.compile(r"(Chokaq\w+) (fires|silent|absent): \S.{5,}")
SERIES = re.compile(r"^([\w:]+)(?:\{(.*)\})?$")

Case = dict[str, Any]


def cases() -> list[tuple[str, str, Case]]:
    """Every case: its alert, its kind, and itself."""
    found = []
    for file in CASES:
        for case in document(file)["tests"]:
            match = NAME.fullmatch(case["name"])
            assert match, f"{file.name}: {case['name']}"
            found.append((match[1], match[2], case))
    return found


def given(case: Case) -> set[str]:
    """The series that a case has."""
    return {match[1] for series in case["input_series"] if (match := SERIES.match(series["series"]))}


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_alerts_fire_and_stay_silent_as_they_should(file: Path) -> None:
    told = run("promtool", "test", "rules", file)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "SUCCESS" in told.stdout


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_cases_in_which_it_fires_stays_silent_and_misses_figures(alert: Alert) -> None:
    asked = sources()[alert.name]
    own: dict[str, list[Case]] = {"fires": [], "silent": [], "absent": []}
    for name, kind, case in cases():
        if name == alert.name:
            assert all(look["alertname"] == name for look in case["alert_rule_test"])
            own[kind].append(case)
    assert own["fires"]
    for case in own["fires"]:
        assert case["alert_rule_test"][-1]["exp_alerts"] or any(look["exp_alerts"] for look in case["alert_rule_test"])
    assert own["silent"]
    for case in own["silent"]:
        assert not any(look["exp_alerts"] for look in case["alert_rule_test"])
        assert given(case) & asked, "it is silent about figures that it has"
    assert own["absent"]
    usual = set.intersection(*(given(case) for case in own["fires"])) & asked
    for case in own["absent"]:
        vanish = any("stale" in series["values"] or _stands(series["values"]) for series in case["input_series"])
        assert usual - given(case) or vanish, f"{case['name']}: nothing is missing"


def _stands(values: str) -> bool:
    """A series that never changes, so that nothing happens."""
    return re.fullmatch(r"\d+x\d+", values) is not None


@pytest.mark.parametrize("alert", [alert for alert in ALERTS if alert.lasts != "0m"], ids=lambda alert: alert.name)
def test_the_time_an_alert_takes_is_seen(alert: Alert) -> None:
    """Somewhere it is not there yet, or never comes to be, though its figures are there."""
    looks = [
        look
        for name, kind, case in cases()
        if name == alert.name and kind != "absent"
        for look in case["alert_rule_test"]
    ]
    assert any(look["exp_alerts"] for look in looks)
    assert any(not look["exp_alerts"] for look in looks)


def test_the_series_of_the_cases_are_such_as_are_exported() -> None:
    known = exported() | dict(FOREIGN) | {name: frozenset({"queue"}) for name in LIMITS}
    for _, _, case in cases():
        for series in case["input_series"]:
            match = SERIES.match(series["series"])
            assert match, series
            labels = set(re.findall(r'(\w+)="', match[2] or ""))
            assert match[1] in known, series
            assert labels - {"job", "instance", "namespace"} <= known[match[1]], series
