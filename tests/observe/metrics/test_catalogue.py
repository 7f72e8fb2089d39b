"""The names others rely on: complete, well-formed, and the same in the documents."""

import re
from pathlib import Path

import pytest

from chokaq.observe.metrics.catalogue import BY_NAME, CATALOGUE, Instrument, Kind, Source

from .table import PAGE, table

REFERENCE = {
    "chokaq_jobs_enqueued_total": ("queue", "type"),
    "chokaq_jobs_completed_total": ("queue", "type"),
    "chokaq_jobs_failed_total": ("queue", "type", "error"),
    "chokaq_jobs_processing_seconds": ("queue", "type"),
    "chokaq_jobs_queue_lag_seconds": ("queue", "type"),
    "chokaq_jobs_dlq_total": ("queue", "type", "reason"),
    "chokaq_jobs_retried_total": ("queue", "type", "attempt"),
    "chokaq_workers_active": ("queue",),
    "chokaq_jobs_heartbeat_failures_total": ("queue", "type"),
    "chokaq_jobs_state_transition_conflicts_total": ("queue", "type", "transition"),
    "chokaq_idempotency_claims_total": ("outcome",),
    "chokaq_circuits_events_total": ("type", "state", "event"),
}
"""The twelve instruments of the system this one follows, with their labels."""


def test_every_name_stands_once() -> None:
    assert len(BY_NAME) == len(CATALOGUE)


def test_the_twelve_instruments_of_the_reference_are_there_with_their_labels() -> None:
    assert {name: BY_NAME[name].labels for name in REFERENCE} == REFERENCE


@pytest.mark.parametrize("one", CATALOGUE, ids=lambda one: one.name)
def test_a_name_says_kind_and_unit_as_prometheus_has_it(one: Instrument) -> None:
    assert re.fullmatch(r"chokaq(_[a-z]+)+", one.name)
    assert one.name.endswith("_total") is (one.kind is Kind.COUNTER)
    assert (one.unit == "seconds") is ("_seconds" in one.name)
    assert (one.unit == "bytes") is ("_bytes" in one.name)
    assert one.help.endswith(".")
    assert one.sources


@pytest.mark.parametrize("one", CATALOGUE, ids=lambda one: one.name)
def test_only_histograms_have_bounds_and_these_rise(one: Instrument) -> None:
    assert bool(one.bounds) is (one.kind is Kind.HISTOGRAM)
    assert list(one.bounds) == sorted(set(one.bounds))
    assert one.cells == (len(one.bounds) + 2 if one.bounds else 1)


def test_the_limits_of_health_are_bounds_of_how_long_jobs_wait() -> None:
    assert {5.0, 10.0} <= set(BY_NAME["chokaq_jobs_queue_lag_seconds"].bounds)


def test_what_only_the_leader_shows_is_never_mixed_with_gauges_of_all_workers() -> None:
    gauges = [one for one in CATALOGUE if one.kind is Kind.GAUGE and Source.LEADER in one.sources]
    assert gauges
    assert all(one.sources == (Source.LEADER,) for one in gauges)


def test_the_page_about_metrics_has_the_catalogue_word_for_word() -> None:
    assert table() in Path(PAGE).read_text(encoding="utf-8"), "run python -m tests.observe.metrics.table"
