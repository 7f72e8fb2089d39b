"""The repairs over the real stores: the same answers as over the store in memory that the other tests use."""

from datetime import timedelta
from typing import Any

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations import (
    Action,
    OperationError,
    by,
    check_edits,
    dlq_filter,
    drain_worker,
    drop_jobs,
    edit_job,
    list_audit,
    list_stopped,
    preview_jobs,
    purge_jobs,
    resurrect_jobs,
    show_job,
    show_stopped,
)
from chokaq.store.protocol import Session, Store
from chokaq.store.repairs import DlqFilter, RepairAnswer
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import ERROR, QUEUE, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stopped import everywhere, fail, stopped

ANNA = by("anna", "the storm is over")


def test_a_job_in_every_state_is_answered_by_where_it_stands(session: Session) -> None:
    found = everywhere(session)
    answers = resurrect_jobs(session, [*found.values(), new_id()], ANNA)
    reversible = {JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE}
    assert [answer.result for answer in answers.answers] == [
        *("accepted" if status in reversible else "wrong_state" for status in found),
        "unknown",
    ]
    refused = {answer.id: answer.status for answer in answers.answers if answer.result == "wrong_state"}
    assert refused == {job: status for status, job in found.items() if status not in reversible}


def test_every_action_leaves_actor_and_reason(session: Session) -> None:
    """C48."""
    jobs = fail(session, new_jobs(3))
    edit_job(session, jobs[0], check_edits(priority=7, max_payload_bytes=100), ANNA, within=Pillar.DLQ)
    resurrect_jobs(session, [jobs[0]], ANNA)
    drop_jobs(session, [jobs[1]], ANNA)
    purge_jobs(session, [jobs[2]], ANNA)
    holder = Holder(session)
    assert drain_worker(session, holder.id, ANNA) == RepairAnswer(holder.id, "accepted")
    entries = list_audit(session).entries
    assert [entry.target for entry in entries] == [holder.id, jobs[2], jobs[1], jobs[0], jobs[0]]
    assert {(entry.actor, entry.reason) for entry in entries} == {("anna", "the storm is over")}
    assert len({entry.action for entry in entries}) == 5
    assert [entry.actor for entry in list_audit(session, holder.id).entries] == ["anna"]


def test_an_edited_resurrection_runs_with_what_it_was_given(session: Session) -> None:
    (job,) = fail(session, [new_job(priority=3, idempotency_key="k", tags="old")])
    edits = check_edits(payload='{"n": "ü"}', tags=None, max_payload_bytes=100)
    assert resurrect_jobs(session, [job], ANNA, edits=edits).complete
    view = show_job(session, job).job
    assert (view.status, view.payload, view.tags) == (JobStatus.PENDING, '{"n": "\\u00fc"}', None)
    assert (view.priority, view.idempotency_key, view.attempt_count) == (3, "k", 0)
    (run,) = Holder(session).fetch(1).jobs
    assert (run.id, run.payload) == (job, '{"n": "\\u00fc"}')


def test_the_holder_of_a_key_is_named_before_and_after(session: Session, store: Store) -> None:
    (job,) = fail(session, [new_job(idempotency_key="k")])
    live = new_job(idempotency_key="k")
    session.enqueue_jobs([live])
    assert any(live.id in risk for risk in show_stopped(session, job, store.now()).risks)
    answer = resurrect_jobs(session, [job], ANNA).answers[0]
    assert (answer.result, answer.status, answer.holder) == ("key_conflict", JobStatus.FAILED, live.id)
    assert resurrect_jobs(session, [job], ANNA, without_key=True).complete


def test_an_action_by_filter_takes_the_last_to_stop_and_no_dropped_ones(session: Session, lab: Lab) -> None:
    early, middle, late = fail(session, new_jobs(3))
    zombie, dropped = stopped(session, JobStatus.ZOMBIE), stopped(session, JobStatus.DROPPED)
    for job, minutes in ((late, 5), (middle, 20), (zombie, 10), (early, 30), (dropped, 1)):
        lab.age(job, "FailedAtUtc", minutes * 60_000, "JobsDLQ")
    found = preview_jobs(session, DlqFilter(queue=QUEUE), Action.RESURRECT, 3)
    assert (found.ids, found.matched, found.truncated) == ([late, zombie, middle], 4, True)
    assert preview_jobs(session, DlqFilter(queue=QUEUE), Action.PURGE).ids[0] == dropped
    assert resurrect_jobs(session, found.ids, ANNA).complete


def test_jobs_are_dropped_by_filter_batch_by_batch_each_with_its_audit_row(session: Session) -> None:
    jobs = fail(session, new_jobs(5))
    other = fail(session, [new_job(queue="other")], queue="other")
    where, batches = DlqFilter(queue=QUEUE), []
    while (found := preview_jobs(session, where, Action.DROP, 2)).ids:
        batches.append((found.matched, len(found.ids)))
        assert drop_jobs(session, found.ids, ANNA).complete
    assert batches == [(5, 2), (3, 2), (1, 1)]
    assert {show_job(session, job).job.status for job in jobs} == {JobStatus.DROPPED}
    assert show_job(session, other[0]).job.status == JobStatus.FAILED
    entries = list_audit(session).entries
    assert sorted(entry.target for entry in entries if entry.action == "drop") == sorted(jobs)


def test_a_stopped_job_is_listed_by_text_time_and_reason_and_its_cursor_is_bound_to_them(
    session: Session, store: Store, lab: Lab
) -> None:
    jobs = fail(session, [new_job(tags="100% [sure]_") for _ in range(3)], FailureReason.TIMEOUT)
    fail(session, [new_job(tags="1000 sure")])
    for job in jobs:
        lab.age(job, "FailedAtUtc", 3_600_000, "JobsDLQ")

    def where(**words: Any) -> DlqFilter:
        return dlq_filter(reason="timeout", tag="0% [", search="[SURE]_", older_than=1_800.0, now=store.now(), **words)

    page = list_stopped(session, where(), 2, older_than=1_800.0)
    assert [job.id for job in page.jobs] == jobs[:0:-1]
    rest = list_stopped(session, where(), 2, page.after, older_than=1_800.0)
    assert ([job.id for job in rest.jobs], rest.after) == ([jobs[0]], None)
    with pytest.raises(OperationError, match="another filter"):
        list_stopped(session, where(queue=QUEUE), 2, page.after, older_than=1_800.0)
    assert list_stopped(session, dlq_filter(search="sur_")).jobs == []
    assert len(list_stopped(session, dlq_filter(failed_from=store.now() - timedelta(minutes=5))).jobs) == 1


def test_an_age_and_a_text_with_wildcards_mean_what_they_say(session: Session, store: Store, lab: Lab) -> None:
    old, young, other = fail(session, [new_job(tags="100% [sure]"), new_job(tags="100% [sure]"), new_job(tags="1000")])
    for job in (old, other):
        lab.age(job, "FailedAtUtc", 3_600_000, "JobsDLQ")
    words: dict[str, Any] = {"older_than": 1_800.0, "now": store.now(), "reason": "fatal-error"}
    assert preview_jobs(session, dlq_filter(**words, search="0% [")).ids == [old]
    assert preview_jobs(session, dlq_filter(tag="100%", failed_from=store.now() - timedelta(minutes=5))).ids == [young]
    assert preview_jobs(session, dlq_filter(search="hung up")).matched == 3


def test_a_stopped_job_is_shown_with_the_trace_of_its_attempt(session: Session, store: Store) -> None:
    (job,) = fail(session, new_jobs(1), FailureReason.TIMEOUT)
    found = show_stopped(session, job, store.now())
    assert [attempt.error for attempt in found.attempts] == [ERROR]
    assert any(risk.startswith("Timeout") for risk in found.risks)
