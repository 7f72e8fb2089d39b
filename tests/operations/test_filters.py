"""Words become filters, or are refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations import OperationError, dlq_filter, job_filter
from chokaq.store.records import JobFilter
from chokaq.store.repairs import DlqFilter

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def test_a_status_or_a_reason_decides_the_pillar() -> None:
    assert job_filter().pillar == Pillar.HOT
    assert job_filter(status="processing") == JobFilter(status=JobStatus.PROCESSING)
    assert job_filter(status="SUCCEEDED").pillar == Pillar.ARCHIVE
    assert job_filter(status="Zombie").pillar == Pillar.DLQ
    assert job_filter(reason="fatal-error") == JobFilter(pillar=Pillar.DLQ, reason=FailureReason.FATAL_ERROR)
    assert job_filter(pillar="dlq", queue="q", tag="t") == JobFilter(pillar=Pillar.DLQ, queue="q", tag="t")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"status": "gone"}, "there is no status 'gone'; it is one of Pending, Fetched"),
        ({"reason": "x"}, "there is no reason 'x'"),
        ({"pillar": "x"}, "there is no pillar 'x'; it is one of hot, archive, dlq"),
        ({"pillar": "hot", "status": "failed"}, "Failed stands in the pillar dlq, not in hot"),
        ({"pillar": "hot", "reason": "timeout"}, "a failure reason stands in the pillar dlq, not in hot"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: dict[str, str], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        job_filter(**words)


def test_a_filter_of_the_dlq_is_read_from_words_and_instants() -> None:
    assert dlq_filter() == DlqFilter()
    found = dlq_filter(
        queue="q", type_key="a.v1", reason="timeout", status="zombie", tag="%_[", search="100%", failed_from=NOON
    )
    assert found == DlqFilter(
        queue="q",
        type_key="a.v1",
        reason=FailureReason.TIMEOUT,
        status=JobStatus.ZOMBIE,
        tag="%_[",
        search="100%",
        failed_from=NOON,
    )


def test_an_age_counts_back_from_the_databases_clock() -> None:
    assert dlq_filter(older_than=3_600, now=NOON) == DlqFilter(failed_until=NOON - timedelta(hours=1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"status": "pending"}, "Pending stands in the pillar hot, not in the DLQ"),
        ({"status": "succeeded"}, "Succeeded stands in the pillar archive, not in the DLQ"),
        ({"status": "gone"}, "there is no status 'gone'"),
        ({"reason": "bad luck"}, "there is no reason 'bad luck'"),
        ({"queue": "ü"}, "is not a queue name"),
        ({"queue": "q" * 256}, "is not a queue name"),
        ({"type_key": " x"}, "has blanks at its ends"),
        ({"type_key": "x" * 256}, "at most 255"),
        ({"tag": " "}, "the tag is blank"),
        ({"search": ""}, "the text to search for is blank"),
        ({"search": "x" * 1_001}, "has 1001 characters; at most 1000"),
        ({"search": "a\0"}, "holds a NUL"),
        ({"failed_from": NOON, "failed_until": NOON - timedelta(seconds=1)}, "no job can have stopped from"),
        ({"failed_from": NOON, "older_than": 60.0, "now": NOON}, "no job can have stopped from"),
        ({"failed_from": NOON.replace(tzinfo=None)}, "failed_from needs a time zone"),
        ({"failed_until": NOON, "older_than": 60.0, "now": NOON}, "either an age or a latest instant"),
        ({"older_than": 0.0, "now": NOON}, "the age must be above 0"),
        ({"older_than": 4e9, "now": NOON}, "at most a hundred years"),
        ({"older_than": float("nan"), "now": NOON}, "the age must be above 0"),
        ({"older_than": 1.0}, "needs the database's clock"),
    ],
)
def test_a_filter_out_of_bounds_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        dlq_filter(**words)
