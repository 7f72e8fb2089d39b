"""Grafana's dashboard: a person can read it, Grafana knows every field of it, and Prometheus every expression.

What it looks like in Grafana is not tested here (docs/unproven.md).
"""

import json
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from .files import DEPLOY
from .prometheus import run
from .promql import Series

FILE = DEPLOY / "grafana" / "chokaq.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = BOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
VARIABLES: list[dict[str, Any]] = BOARD["templating"]["list"]
BUILT_IN = {"__rate_interval": "1m"}
NOT_IN_THE_SCHEMA = {("annotations", "list", 0, "titleFormat"), ("annotations", "list", 0, "textFormat")}
"""Fields that Grafana's Prometheus data source reads and Grafana's schema leaves open."""


def expressions() -> list[tuple[str, str]]:
    """Every PromQL expression, and where it stands."""
    found = [(panel["title"], target["expr"]) for panel in SHOWN for target in panel["targets"]]
    found += [(annotation["name"], annotation["expr"]) for annotation in BOARD["annotations"]["list"]]
    return found


def filled(expression: str) -> str:
    """As Grafana asks it when all values are chosen."""
    values = BUILT_IN | {variable["name"]: variable.get("allValue", "prometheus") for variable in VARIABLES}
    return re.sub(r"\$(\w+)", lambda match: values[match[1]], expression)


def lost(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """What a document has that another has not, or has otherwise."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after:
                yield from lost(value, after[name], (*path, name))
            else:
                yield (*path, name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, (*path, at))
    elif before != after:
        yield path


def test_grafana_knows_every_field() -> None:
    plugins.register_default_plugins()
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(BOARD)))
    assert set(lost(BOARD, read)) == NOT_IN_THE_SCHEMA


def test_a_misspelt_field_would_be_found() -> None:
    plugins.register_default_plugins()
    wrong = json.loads(json.dumps(BOARD))
    wrong["panels"][1]["options"]["colourMode"] = "value"
    wrong["panels"][1]["gird"] = {}
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(wrong)))
    assert set(lost(wrong, read)) - NOT_IN_THE_SCHEMA == {("panels", 1, "options", "colourMode"), ("panels", 1, "gird")}


def test_panels_have_ids_titles_and_descriptions_of_their_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len({panel["title"] for panel in SHOWN}) == len(SHOWN) >= 50
    for panel in SHOWN:
        assert panel["description"].endswith("."), panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) >= 1
    assert all(panel["panels"] == [] and not panel["collapsed"] for panel in PANELS if panel["type"] == "row")


def test_the_rows_are_those_an_operator_looks_for() -> None:
    assert [panel["title"] for panel in PANELS if panel["type"] == "row"] == [
        "Overview",
        "Lag",
        "Throughput and failures",
        "Retries",
        "Durations",
        "Workers and restarts",
        "Store",
        "Circuits",
        "Process health",
    ]


def test_panels_lie_on_the_grid_and_not_on_each_other() -> None:
    places = [panel["gridPos"] for panel in PANELS]
    for place in places:
        assert place["x"] >= 0
        assert place["y"] >= 0
        assert place["w"] > 0
        assert place["h"] > 0
        assert place["x"] + place["w"] <= 24
    for one, other in combinations(PANELS, 2):
        a, b = one["gridPos"], other["gridPos"]
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, f"{one['title']} lies on {other['title']}"


def test_every_panel_stands_below_its_row_and_rows_follow_each_other() -> None:
    tops = [panel["gridPos"]["y"] for panel in PANELS]
    assert all(above <= below for above, below in pairwise(tops))
    for row in (panel for panel in PANELS if panel["type"] == "row"):
        assert row["gridPos"] | {"y": 0} == {"h": 1, "w": 24, "x": 0, "y": 0}


def test_every_variable_is_used_and_every_one_used_exists() -> None:
    texts = [expression for _, expression in expressions()]
    texts += [json.dumps(panel["datasource"]) for panel in SHOWN]
    texts += [variable["query"]["query"] for variable in VARIABLES if variable["type"] == "query"]
    used = {name for text in texts for name in re.findall(r"\$\{?(\w+)", text)}
    assert used == {variable["name"] for variable in VARIABLES} | set(BUILT_IN)


def test_variables_come_from_metrics_that_have_these_labels() -> None:
    for variable in VARIABLES:
        if variable["type"] != "query":
            continue
        match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert match, variable
        assert match[2] == variable["name"]
        assert match[2] in Series().labels(filled(match[1])).ever
        # A variable rests on those that stand before it alone.
        earlier = {other["name"] for other in VARIABLES[: VARIABLES.index(variable)]}
        assert set(re.findall(r"\$(\w+)", match[1])) <= earlier
        assert variable["allValue"] == ".*", "it has to match where the label is missing, too"


def test_everything_asks_the_data_source_that_was_chosen() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert VARIABLES[0]["type"] == "datasource"
    for holder in [*SHOWN, *(target for panel in SHOWN for target in panel["targets"]), *BOARD["annotations"]["list"]]:
        assert holder["datasource"] == source


def test_prometheus_reads_every_expression(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{at}", "expr": filled(text)} for at, (_, text) in enumerate(expressions())]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    told = run("promtool", "check", "rules", "--lint=none", file)
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"{len(rules)} rules found" in told.stdout
    assert len(rules) >= 60


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_every_metric_and_label_of_a_panel_exists(title: str, expression: str) -> None:
    labels = Series().labels(filled(expression))
    [place] = [
        panel for panel in [*SHOWN, *BOARD["annotations"]["list"]] if panel.get("title", panel.get("name")) == title
    ]
    names = {
        name
        for target in place.get("targets", [])
        if target["expr"] == expression
        for name in re.findall(r"\{\{ ?(\w+) ?\}\}", target["legendFormat"])
    }
    assert names <= labels.ever, f"no line of {title} has {names - labels.ever}"


def test_the_metrics_of_the_catalogue_are_shown() -> None:
    known = Series()
    shown = {name for _, expression in expressions() for name in known.names(filled(expression))}
    shown = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    from chokaq.observe.metrics.catalogue import CATALOGUE

    assert {instrument.name for instrument in CATALOGUE} <= shown


def test_rates_are_asked_over_grafanas_own_interval() -> None:
    for title, expression in expressions():
        for interval in re.findall(r"\[([^\]]+)\]", expression):
            assert interval == "$__rate_interval", title
