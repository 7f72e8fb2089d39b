"""What two looks at the marks mean, and whom a difference concerns: pure rules."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from chokaq.deck import topics
from chokaq.deck.changes import Difference, difference
from chokaq.lifecycle.states import JobStatus, Outcome, Pillar
from chokaq.store.looking import BucketMark, Changes, Watched

AT = datetime(2026, 5, 1, tzinfo=UTC)
QUIET = Changes(
    now=AT, audit=7, order=2, circuits=(1, 3, AT), workers=(2, 0, AT), newest=[("B", "mail"), ("A", "mail")],
    buckets=[BucketMark(10, "mail", Outcome.SUCCEEDED, 4)], leases={"mail": 2}, watched=[],
)  # fmt: skip
SEEN = Watched(
    id="A", pillar=Pillar.HOT, status=JobStatus.PENDING, lease=0, attempt_count=0, priority=10, progress=None,
    cancel_requested=False, noted_at=None,
)  # fmt: skip


def after(**fields: Any) -> Difference:
    """What changed when these marks did."""
    return difference(QUIET, msgspec.structs.replace(QUIET, **fields))


def test_nothing_changed() -> None:
    assert after(now=AT.replace(hour=1)) == Difference()


def test_what_leaves_the_window_or_hot_says_nothing() -> None:
    assert after(buckets=[]) == Difference()
    assert after(newest=[("B", "mail")]) == Difference()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"newest": [("C", "other"), ("B", "mail")]}, Difference(hot=frozenset({"other"}))),
        ({"leases": {"mail": 3}}, Difference(hot=frozenset({"mail"}))),
        ({"leases": {}}, Difference(hot=frozenset({"mail"}))),
        ({"buckets": [BucketMark(10, "mail", 0, 5)]}, Difference(succeeded=frozenset({"mail"}))),
        ({"buckets": [BucketMark(11, "other", 1, 1)]}, Difference(failed=frozenset({"other"}))),
        ({"buckets": [BucketMark(11, "other", 2, 1)]}, Difference(retried=frozenset({"other"}))),
        ({"audit": 8}, Difference(audit=True)),
        ({"order": 3}, Difference(circuits=True)),
        ({"circuits": (1, 4, AT)}, Difference(circuits=True)),
        ({"workers": (3, 0, AT)}, Difference(workers=True)),
        ({"workers": (2, 1, AT)}, Difference(workers=True)),
        ({"workers": (2, 0, AT.replace(hour=1))}, Difference(beats=True)),
    ],
)
def test_each_mark_says_its_own(fields: dict[str, Any], expected: Difference) -> None:
    assert after(**fields) == expected


def test_watched_jobs_change_come_to_an_end_and_are_new_to_a_page() -> None:
    before = msgspec.structs.replace(QUIET, watched=[SEEN])
    running = msgspec.structs.replace(SEEN, status=JobStatus.PROCESSING)
    other = msgspec.structs.replace(SEEN, id="B")

    assert difference(before, msgspec.structs.replace(QUIET, watched=[running])).jobs == {"A"}
    assert difference(before, QUIET).jobs == {"A"}
    assert difference(before, msgspec.structs.replace(QUIET, watched=[SEEN, other])).jobs == frozenset()


HOT, ARCHIVE, DLQ, ALL = (topics.job_list(pillar, None) for pillar in (Pillar.HOT, Pillar.ARCHIVE, Pillar.DLQ, None))
MAIL_DLQ = topics.job_list(Pillar.DLQ, "mail", {"reason": 3})


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Difference(hot=frozenset({"mail"})), {"overview", "queues", "workers", HOT, ALL}),
        (Difference(succeeded=frozenset({"mail"})), {"overview", "queues", "workers", HOT, ARCHIVE, ALL}),
        (Difference(failed=frozenset({"mail"})), {"overview", "queues", "workers", HOT, DLQ, MAIL_DLQ, ALL}),
        (Difference(failed=frozenset({"other"})), {"overview", "queues", "workers", HOT, DLQ, ALL}),
        (Difference(audit=True), {"overview", "queues", "audit", "job:A", HOT, ARCHIVE, DLQ, MAIL_DLQ, ALL}),
        (Difference(circuits=True), {"overview", "circuits"}),
        (Difference(beats=True), {"workers"}),
        (Difference(workers=True), {"overview", "queues", "workers"}),
        (Difference(jobs=frozenset({"A"})), {"job:A"}),
        (Difference(jobs=frozenset({"B"})), set()),
        (Difference(), set()),
    ],
)
def test_a_difference_concerns_who_shows_it(found: Difference, told: set[str]) -> None:
    everything = ["overview", "queues", "workers", "circuits", "audit", "job:A", HOT, ARCHIVE, DLQ, MAIL_DLQ, ALL]

    assert {topic for topic in everything if found.concerns(topic)} == told


def test_a_list_is_told_of_the_jobs_it_shows() -> None:
    found = Difference(jobs=frozenset({"A"}))

    assert found.concerns(MAIL_DLQ, ["A", "C"])
    assert not found.concerns(MAIL_DLQ, ["C"])
    assert topics.job_list(Pillar.DLQ, "mail", {"reason": 3}) == MAIL_DLQ
    assert topics.job_list(Pillar.DLQ, "mail", {"reason": 4}) != MAIL_DLQ
