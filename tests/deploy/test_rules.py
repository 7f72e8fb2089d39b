"""The rules of deploy/prometheus: Prometheus accepts them, everything they name exists, and each alert says what to do."""

import re
from pathlib import Path

import pytest

from tools.monitoring import DEPLOY, FILES

from .files import ROOT, document
from .prometheus import FOLDER, LIMITS, RULES, RUNBOOKS, Alert, alerts, groups, recordings, run, series
from .promql import Series, Wrong

ALERTS = alerts()
PAGES = sorted(path for path in RUNBOOKS.glob("*.md") if path.name != "index.md")

each = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def test_prometheus_accepts_the_rules() -> None:
    told = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", *RULES)
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.count("SUCCESS") == len(RULES) >= 7


def test_prometheus_accepts_the_example_of_its_configuration() -> None:
    told = run("promtool", "check", "config", FOLDER / "prometheus.yml")
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"{len(RULES)} rule files found" in told.stdout


def test_the_examples_of_limits_are_rules_that_alerts_ask_for(tmp_path: Path) -> None:
    text = (FOLDER / "rules" / "limits.yml").read_text(encoding="utf-8")
    examples = "".join(f"{line.removeprefix('#')}\n" for line in text.splitlines() if re.match(r"#   +(- )?\w+:", line))
    file = tmp_path / "limits.yml"
    file.write_text(text.replace("rules: []", f"rules:\n{examples}"), encoding="utf-8")
    told = run("promtool", "check", "rules", file)
    assert told.returncode == 0, told.stdout + told.stderr
    assert {rule["record"] for rule in document(file)["groups"][0]["rules"]} == LIMITS
    asked = {name for alert in ALERTS for name in series().names(alert.expr)}
    assert asked >= LIMITS


def test_whatever_is_recorded_exists_and_is_asked_for() -> None:
    known = series()
    expressions = [alert.expr for alert in ALERTS] + [expression for _, expression in recordings()]
    asked = {name for expression in expressions for name in known.names(expression)}
    assert {name for name, _ in recordings()} <= asked


def test_recordings_are_made_once_a_minute_since_windows_are_sums_over_them() -> None:
    for group in groups():
        if any("record" in rule for rule in group["rules"]):
            assert group["interval"] == "1m", group["name"]


def test_names_are_unique_and_ours() -> None:
    names = [alert.name for alert in ALERTS]
    assert len(set(names)) == len(names) >= 40
    assert all(re.fullmatch(r"Chokaq([A-Z][a-z]+)+", name) for name in names)
    found = [group["name"] for group in groups()]
    assert len(set(found)) == len(found)


@each
def test_every_metric_and_label_of_an_alert_exists(alert: Alert) -> None:
    labels = series().labels(alert.expr)
    assert alert.named() <= labels.always, f"not every series has {alert.named() - labels.always}"
    assert set(re.findall(r"\$labels\.(\w+)", alert.words)) <= labels.ever


@each
def test_an_alert_says_what_is_wrong_where_how_urgent_it_is_and_what_to_do(alert: Alert) -> None:
    assert re.fullmatch(r"\d+[mh]", alert.lasts)
    assert set(alert.labels) == {"severity"}
    assert alert.severity in {"critical", "warning", "info"}
    assert set(alert.annotations) == {"summary", "description", "runbook_url"}
    assert len(alert.annotations["summary"]) <= 120
    assert not alert.annotations["summary"].endswith(".")
    assert alert.annotations["description"].endswith((".", "?"))
    if "queue" in series().labels(alert.expr).always:
        assert "{{ $labels.queue }}" in alert.annotations["summary"]
        assert "{{ $labels.queue }}" in alert.annotations["description"]


@each
def test_an_alert_has_a_runbook_that_names_it(alert: Alert) -> None:
    assert alert.runbook.exists()
    assert f"`{alert.name}`" in alert.runbook.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_runbook_is_reached_by_an_alert_and_names_none_that_leads_elsewhere(page: Path) -> None:
    leading = {alert.name for alert in ALERTS if alert.runbook == page}
    assert leading
    head = page.read_text(encoding="utf-8").split("**It means**")[0]
    assert set(re.findall(r"`(Chokaq\w+)`", head)) == leading


def test_no_page_names_an_alert_that_does_not_exist() -> None:
    names = {alert.name for alert in ALERTS}
    for page in (ROOT / "docs").rglob("*.md"):
        assert set(re.findall(r"\bChokaq[A-Z][A-Za-z]+\b", page.read_text(encoding="utf-8"))) <= names, page


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_what_its_source_says(name: str) -> None:
    assert (DEPLOY / name).read_text(encoding="utf-8") == FILES[name](), "run `python -m tools.monitoring`"


def test_the_operators_object_holds_every_rule() -> None:
    made = document(DEPLOY / "kubernetes" / "components" / "monitoring" / "prometheusrule.yaml")
    assert (made["apiVersion"], made["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert made["spec"]["groups"] == [group for group in groups() if group["rules"]]


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("sum by (queue) (chokaq_jobs_completed)", "no series chokaq_jobs_completed"),
        ('sum by (queue) (rate(chokaq_jobs_completed_total{reason="Timeout"}[5m]))', "no label reason"),
        ("sum by (queue) (chokaq_ready)", "no label queue"),
        (
            "sum by (queue) (chokaq_queue_jobs) > on (type) sum by (type) (chokaq_circuits_events_total)",
            "no label type",
        ),
        ("sum by (queue) (chokaq_queue_jobs) > sum by (job) (chokaq_queue_jobs)", "never match"),
        ("histogram_quantile(0.9, sum by (queue) (rate(chokaq_jobs_pickup_seconds_bucket[5m])))", "no label le"),
        ("sum by (queue) (rate(chokaq_jobs_pickup_seconds[5m]))", "no series chokaq_jobs_pickup_seconds"),
    ],
)
def test_what_does_not_exist_is_found(expression: str, complaint: str) -> None:
    with pytest.raises(Wrong, match=complaint):
        Series().labels(expression)
