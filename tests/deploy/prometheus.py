"""The rules as they are shipped, and Prometheus's own programs to judge them with."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .files import DEPLOY, ROOT, document
from .promql import Labels, Series

FOLDER = DEPLOY / "prometheus"
RULES = sorted((FOLDER / "rules").glob("*.yml"))
CASES = sorted((Path(__file__).parent / "alerts").glob("*.yml"))
RUNBOOKS = ROOT / "docs" / "runbooks"
SITE = "https://chokaq.example.com/"
"""Stands for where the documentation is served."""
LIMITS = {"chokaq:lag_limit_seconds", "chokaq:run_limit_seconds"}
"""What users record for single queues (limits.yml)."""
PACKAGES = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
    "prometheus-blackbox-exporter": "prometheus-blackbox-exporter",
}
"""By Debian's package."""


@dataclass(frozen=True)
class Alert:
    """One alerting rule."""

    name: str
    group: str
    expr: str
    lasts: str
    """Its `for`."""
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def severity(self) -> str:
        """critical, warning or info."""
        return self.labels["severity"]

    @property
    def runbook(self) -> Path:
        """The page that its URL leads to."""
        url = self.annotations["runbook_url"]
        assert url.startswith(f"{SITE}runbooks/"), url
        return RUNBOOKS / f"{url.removeprefix(f'{SITE}runbooks/').strip('/')}.md"

    @property
    def words(self) -> str:
        """Summary and description."""
        return f"{self.annotations['summary']}\n{self.annotations['description']}"

    def named(self) -> set[str]:
        """Labels that its words need: those that no `with` makes sure of."""
        sure = re.sub(r"\{\{ ?with \$labels\.\w+ ?\}\}.*?\{\{ ?end ?\}\}", "", self.words)
        return set(re.findall(r"\$labels\.(\w+)", sure))


def groups() -> list[dict[str, Any]]:
    """Every group of every file."""
    return [group for file in RULES for group in document(file)["groups"]]


def alerts() -> list[Alert]:
    """Every alert, in the order of the files."""
    return [
        Alert(rule["alert"], group["name"], rule["expr"], rule["for"], rule["labels"], rule["annotations"])
        for group in groups()
        for rule in group["rules"]
        if "alert" in rule
    ]


def recordings() -> list[tuple[str, str]]:
    """Every recorded series and its expression: those of recording.yml before those that rest on them."""
    files = ("recording", "objectives")
    rules = [
        rule
        for name in files
        for group in document(FOLDER / "rules" / f"{name}.yml")["groups"]
        for rule in group["rules"]
    ]
    return [(rule["record"], rule["expr"]) for rule in rules]


def series() -> Series:
    """What an alert may ask for."""
    known = Series({name: Labels(frozenset({"queue"}), frozenset({"queue"})) for name in LIMITS})
    for name, expression in recordings():
        known.record(name, expression)
    return known


def sources() -> dict[str, set[str]]:
    """By alert: every series that it asks for, through what is recorded as well."""
    known, recorded = series(), dict(recordings())
    found: dict[str, set[str]] = {}
    for alert in alerts():
        names: set[str] = set()
        left = [alert.expr]
        while left:
            for name in known.names(left.pop()) - names:
                names.add(name)
                if name in recorded:
                    left.append(recorded[name])
        found[alert.name] = names
    return found


def found(program: str) -> str:
    """Where a program of Prometheus's is; without it the test is left out loudly, and fails in CI."""
    path = shutil.which(program)
    if path is None:
        text = f"{program} is not installed: apt-get install {PACKAGES[program]}"
        if os.environ.get("CI"):
            pytest.fail(f"{text} (.ci/run does)")
        pytest.skip(text)
    return path


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run one of them to its end, in the root of the source."""
    command = [found(program), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)


def missing() -> list[str]:
    """Programs that these tests need and that are not here."""
    return [program for program in PACKAGES if shutil.which(program) is None]
