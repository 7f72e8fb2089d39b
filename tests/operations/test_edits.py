"""Editing a job where it stands, within the bounds of an enqueue."""

from typing import Any

import pytest
from msgspec import UNSET

from chokaq.jobs.ids import is_id
from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.operations import OperationError, by, check_edits, edit_job
from chokaq.store.records import JobView
from chokaq.store.repairs import Edits, RepairAnswer
from tests.support.fake_repairs import FakeRepairs
from tests.support.ids import new_id
from tests.support.jobs import TYPE

ANNA = by("anna", "a typo")


def edits(**fields: Any) -> Edits:
    """Checked edits under a small limit."""
    return check_edits(max_payload_bytes=100, **fields)


def test_what_is_not_named_is_left_alone() -> None:
    assert edits() == Edits()
    assert edits(priority=0) == Edits(payload=UNSET, tags=UNSET, priority=0)
    assert edits(tags=None).tags is None
    assert edits(tags=["a", "b"]).tags == "a,b"


def test_a_payload_is_kept_as_text_with_non_ascii_escaped() -> None:
    assert edits(payload=' {"b": 1.50, "a": "ü"}\n').payload == '{"b": 1.50, "a": "\\u00fc"}'


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"payload": "{"}, "the payload is not JSON"),
        ({"payload": ""}, "the payload is not JSON"),
        ({"payload": "NaN"}, "the payload is not JSON"),
        ({"payload": '"' + "x" * 99 + '"'}, "the payload of this job has 101 bytes; at most 100"),
        ({"payload": '"' + "ü" * 20 + '"'}, "has 122 bytes"),
        ({"tags": "x" * 1_001}, "tags has 1001 characters"),
        ({"priority": -1}, "from 0 to 1000000, not -1"),
        ({"priority": 1_000_001}, "from 0 to 1000000"),
        ({"priority": True}, "must be a whole number"),
    ],
)
def test_what_an_enqueue_would_refuse_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        edits(**fields)


@pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE])
def test_a_stopped_job_is_edited_where_it_stands(fake: FakeRepairs, status: JobStatus) -> None:
    job = fake.stopped(status, tags="old")
    answer = edit_job(fake.session, job.lower(), edits(payload='{"n":2}', tags=None), ANNA, within=Pillar.DLQ)
    assert answer == RepairAnswer(job, "accepted", status)
    assert (fake.jobs[job].payload, fake.jobs[job].tags, fake.jobs[job].priority) == ('{"n":2}', None, 10)
    call = fake.calls[0]
    assert (call.actor, call.reason) == ("anna", "a typo")
    assert call.request is not None
    assert is_id(call.request)


def test_a_pending_job_is_edited_and_a_running_one_is_not(fake: FakeRepairs) -> None:
    pending, running = fake.add(), fake.add(status=JobStatus.PROCESSING)
    assert edit_job(fake.session, pending, edits(priority=7), ANNA).result == "accepted"
    assert edit_job(fake.session, running, edits(priority=7), ANNA) == RepairAnswer(
        running, "wrong_state", JobStatus.PROCESSING
    )
    assert [fake.jobs[job].priority for job in (pending, running)] == [7, 10]


def test_a_job_of_another_pillar_than_the_one_meant_is_left_alone(fake: FakeRepairs) -> None:
    pending, nobody = fake.add(), new_id()
    assert edit_job(fake.session, pending, edits(priority=7), ANNA, within=Pillar.DLQ).result == "wrong_state"
    assert edit_job(fake.session, nobody, edits(priority=7), ANNA, within=Pillar.DLQ).result == "unknown"
    assert fake.calls == []


def test_a_new_payload_is_checked_against_the_job_it_is_for(fake: FakeRepairs) -> None:
    job = fake.stopped()
    asked: list[tuple[str, str]] = []

    def refuse(view: JobView, payload: str) -> None:
        asked.append((view.type_key, payload))
        raise OperationError("does not fit")

    with pytest.raises(OperationError, match="does not fit"):
        edit_job(fake.session, job, edits(payload="[]"), ANNA, check=refuse)
    assert (asked, fake.calls) == ([(TYPE, "[]")], [])
    assert edit_job(fake.session, job, edits(priority=1), ANNA, check=refuse).result == "accepted"


def test_an_edit_that_changes_nothing_is_refused(fake: FakeRepairs) -> None:
    with pytest.raises(OperationError, match="nothing to edit"):
        edit_job(fake.session, fake.stopped(), edits(), ANNA)
    with pytest.raises(OperationError, match="is not a job id"):
        edit_job(fake.session, "x", edits(priority=1), ANNA)
