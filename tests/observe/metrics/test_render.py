"""The text that Prometheus reads."""

import math
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chokaq.observe.metrics.catalogue import BY_NAME, CATALOGUE, Kind
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.render import merge, render
from chokaq.observe.metrics.values import ValueFile


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(ValueFile(tmp_path / "1-a.figures"), MetricsSettings())


def samples(folder: Path) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = render(folder)[0].decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_it_says_what_kind_of_text_it_is(tmp_path: Path, recorder: Recorder) -> None:
    recorder.add("chokaq_jobs_completed_total", "q", 'a"b\\c\nd')
    body, kind = render(tmp_path)
    assert kind.startswith("text/plain; version=")
    assert body.decode() == (
        "# HELP chokaq_jobs_completed_total Jobs that succeeded and are archived.\n"
        "# TYPE chokaq_jobs_completed_total counter\n"
        'chokaq_jobs_completed_total{queue="q",type="a\\"b\\\\c\\nd"} 1.0\n'
    )


def test_buckets_are_cumulative_and_agree_with_the_count(tmp_path: Path, recorder: Recorder) -> None:
    for value in (0.001, 0.2, 3.0, 1e9):
        recorder.observe("chokaq_jobs_pickup_seconds", "q", value=value)
    found = samples(tmp_path)

    def bucket(bound: str) -> float:
        return found["chokaq_jobs_pickup_seconds_bucket", frozenset({("queue", "q"), ("le", bound)})]

    assert [bucket(bound) for bound in ("0.001", "0.1", "0.25", "5.0", "14400.0", "+Inf")] == [1, 1, 2, 3, 3, 4]
    assert found["chokaq_jobs_pickup_seconds_count", frozenset({("queue", "q")})] == 4
    assert found["chokaq_jobs_pickup_seconds_sum", frozenset({("queue", "q")})] == pytest.approx(1e9 + 3.201)


def test_every_metric_of_the_catalogue_is_rendered_under_its_name_and_kind(tmp_path: Path, recorder: Recorder) -> None:
    for one in CATALOGUE:
        labels = [f"some {label}" for label in one.labels]
        if one.kind is Kind.COUNTER:
            recorder.add(one.name, *labels)
        elif one.kind is Kind.GAUGE:
            recorder.gauge(one.name, *labels).set(1)
        else:
            recorder.observe(one.name, *labels, value=0.5)
    families = list(text_string_to_metric_families(render(tmp_path)[0].decode()))
    assert {family.name: family.type for family in families} == {
        one.name.removesuffix("_total"): one.kind.value for one in CATALOGUE
    }
    assert {family.documentation for family in families} == {one.help for one in CATALOGUE}


def test_what_is_not_known_is_not_shown(tmp_path: Path, recorder: Recorder) -> None:
    recorder.gauge("chokaq_ready").clear()
    assert render(tmp_path)[0] == b""


def test_what_another_version_has_written_is_left_out() -> None:
    assert merge([(("chokaq_of_tomorrow",), (1.0,)), (("chokaq_ready",), (1.0,))]) == {("chokaq_ready",): (1.0,)}


def test_an_unknown_gauge_beside_a_known_one_changes_nothing() -> None:
    key = ("chokaq_child_running_jobs", "q")
    assert merge([(key, (math.nan,)), (key, (2.0,)), (key, (3.0,))]) == {key: (5.0,)}
    assert BY_NAME[key[0]].largest is False
