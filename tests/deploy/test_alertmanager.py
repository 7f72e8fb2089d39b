"""The example for Alertmanager: it is accepted, alerts reach who should hear of them, and those it silences exist."""

import re

import pytest

from .files import document
from .prometheus import FOLDER, Alert, alerts, run, series

FILE = FOLDER / "alertmanager.yml"
ALERTS = {alert.name: alert for alert in alerts()}
RULES = document(FILE)["inhibit_rules"]


def named(matchers: list[str]) -> list[Alert]:
    """The alerts that a list of matchers is about."""
    [matcher] = matchers
    match = re.fullmatch(r'alertname=~?"([\w|]+)"', matcher)
    assert match, matcher
    return [ALERTS[name] for name in match[1].split("|")]


def test_alertmanager_accepts_it() -> None:
    told = run("amtool", "check-config", FILE)
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(("severity", "receiver"), [("critical", "pager"), ("warning", "tickets"), ("info", "nobody")])
def test_severity_decides_who_hears_of_an_alert(severity: str, receiver: str) -> None:
    name = next(alert.name for alert in ALERTS.values() if alert.severity == severity)
    told = run(
        "amtool", "config", "routes", "test", f"--config.file={FILE}", f"alertname={name}", f"severity={severity}"
    )
    assert told.stdout.strip() == receiver, told.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["source_matchers"][0])
def test_an_alert_silences_such_as_exist_and_can_be_told_to_be_about_the_same(rule: dict[str, list[str]]) -> None:
    known = series()
    [source] = named(rule["source_matchers"])
    for target in named(rule["target_matchers"]):
        assert target is not source
        # A label that neither has would make any two alerts equal: only Kubernetes' own may be missing.
        for label in set(rule["equal"]) - {"namespace"}:
            assert label in known.labels(source.expr).ever, f"{source.name} has no {label}"
            assert label in known.labels(target.expr).ever, f"{target.name} has no {label}"


def test_a_cause_is_not_silenced_by_what_follows_from_it() -> None:
    pairs = {
        (source.name, target.name)
        for rule in RULES
        for source in named(rule["source_matchers"])
        for target in named(rule["target_matchers"])
    }
    assert not {(target, source) for source, target in pairs} & pairs
