"""A real Alertmanager with the shipped file keeps quiet what follows from something else, and nothing more."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from tests.support.polling import wait_until

from .files import document
from .prometheus import FOLDER, alerts
from .servers import Server, running
from .test_alertmanager import RULES, named

pytestmark = pytest.mark.processes
SEVERITY = {alert.name: alert.severity for alert in alerts()}
PLACE = {"namespace": "shop", "job": "chokaq", "queue": "emails", "type": "mail.v1", "instance": "w1:9090"}


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With receivers that call nobody."""
    folder = tmp_path_factory.mktemp("alertmanager")
    config = document(FOLDER / "alertmanager.yml")
    config["receivers"] = [{"name": receiver["name"]} for receiver in config["receivers"]]
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    arguments = ("--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address=")
    with running("prometheus-alertmanager", folder, *arguments) as server:
        yield server


PAIRS = [
    (source.name, target.name, rule["equal"])
    for rule in RULES
    for source in named(rule["source_matchers"])
    for target in named(rule["target_matchers"])
]


def alert(name: str, place: dict[str, str]) -> dict[str, Any]:
    """One that fires, as Prometheus tells of it."""
    now = datetime.now(tz=UTC)
    lasts = {"startsAt": (now - timedelta(hours=2)).isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}
    return {"labels": {"alertname": name, "severity": SEVERITY[name], **place}, **lasts}


def states(manager: Server, place: dict[str, str]) -> dict[str, str]:
    """Of the alerts of a place by name: active, suppressed or unprocessed."""
    told: list[dict[str, Any]] = json.loads(manager.get("/api/v2/alerts"))
    return {
        alert["labels"]["alertname"]: alert["status"]["state"]
        for alert in told
        if place.items() <= alert["labels"].items()
    }


@pytest.mark.parametrize(("source", "target", "equal"), PAIRS)
def test_what_follows_is_suppressed_and_the_same_elsewhere_is_not(
    manager: Server, source: str, target: str, equal: list[str]
) -> None:
    # A namespace of its own: what other tests have sent is about something else.
    here = {**PLACE, "namespace": f"{source}-{target}".lower()}
    elsewhere = {**here, equal[-1]: f"{here['namespace']}-elsewhere"}
    manager.post("/api/v2/alerts", [alert(source, here), alert(target, here), alert(target, elsewhere)])
    wait_until(lambda: states(manager, here) == {source: "active", target: "suppressed"}, f"{target} to be suppressed")
    wait_until(lambda: states(manager, elsewhere) == {target: "active"}, f"{target} to be active elsewhere")
