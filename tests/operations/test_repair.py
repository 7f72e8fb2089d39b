"""Preview, resurrect, drop and purge: bounds, actor, reason, one answer per job (C48, mailfathom §4)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chokaq.jobs.ids import is_id
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations import (
    Action,
    OperationError,
    Preview,
    Repaired,
    by,
    drop_jobs,
    preview_jobs,
    purge_jobs,
    resurrect_jobs,
)
from chokaq.store.records import JobView
from chokaq.store.repairs import DlqFilter, Edits, RepairAnswer
from tests.support.fake_repairs import NOW, FakeRepairs
from tests.support.ids import new_id, new_ids
from tests.support.jobs import QUEUE

ANNA = by("anna", "the storm is over")
ACTIONS = [resurrect_jobs, drop_jobs, purge_jobs]


def test_a_resurrection_rings_once_for_every_queue_that_has_jobs_again(fake: FakeRepairs) -> None:
    mail = [fake.stopped() for _ in range(3)]
    other, live = fake.stopped(queue="other"), fake.add(queue="live")
    rung: list[str] = []
    assert not resurrect_jobs(fake.session, [*mail, other, live], ANNA, ring=rung.append).complete
    assert rung == sorted({QUEUE, "other"})
    resurrect_jobs(fake.session, mail, ANNA, ring=rung.append)
    assert len(rung) == 2


def test_each_job_is_answered_in_the_order_named_and_once(fake: FakeRepairs) -> None:
    stopped, dropped, waiting, nobody = fake.stopped(), fake.stopped(JobStatus.DROPPED), fake.add(), new_id()
    found = resurrect_jobs(fake.session, [waiting, stopped.lower(), nobody, dropped, stopped], ANNA)
    assert found.answers == [
        RepairAnswer(waiting, "wrong_state", JobStatus.PENDING),
        RepairAnswer(stopped, "accepted", JobStatus.PENDING, queue=QUEUE),
        RepairAnswer(nobody, "unknown"),
        RepairAnswer(dropped, "wrong_state", JobStatus.DROPPED),
    ]
    assert found.counts == {"accepted": 1, "wrong_state": 2, "unknown": 1, "key_conflict": 0}
    assert not found.complete


def test_a_key_that_a_live_job_holds_is_told_with_its_holder(fake: FakeRepairs) -> None:
    holder, stopped = fake.add(idempotency_key="k"), fake.stopped(idempotency_key="k")
    assert resurrect_jobs(fake.session, [stopped], ANNA).answers == [
        RepairAnswer(stopped, "key_conflict", JobStatus.FAILED, holder)
    ]
    assert resurrect_jobs(fake.session, [stopped], ANNA, without_key=True).complete
    assert fake.jobs[stopped].idempotency_key is None


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_carries_actor_reason_and_a_new_request(
    fake: FakeRepairs, action: Callable[..., Repaired]
) -> None:
    first, second = fake.stopped(), fake.stopped()
    action(fake.session, [first], ANNA)
    action(fake.session, [second], ANNA)
    assert [(call.actor, call.reason) for call in fake.calls] == [("anna", "the storm is over")] * 2
    requests = {call.request for call in fake.calls}
    assert len(requests) == 2
    assert all(request is not None and is_id(request) for request in requests)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("count", [0, 1_001])
def test_an_action_takes_1_to_1000_distinct_jobs(
    fake: FakeRepairs, action: Callable[..., Repaired], count: int
) -> None:
    with pytest.raises(OperationError, match="1 to 1,000 jobs at a time"):
        action(fake.session, new_ids(count), ANNA)
    assert fake.calls == []


@pytest.mark.parametrize("action", ACTIONS)
def test_what_is_no_id_is_refused_before_the_store_is_asked(fake: FakeRepairs, action: Callable[..., Repaired]) -> None:
    with pytest.raises(OperationError, match="is not a job id"):
        action(fake.session, [fake.stopped(), "x"], ANNA)
    assert fake.calls == []


def test_a_drop_needs_a_reason_and_is_final(fake: FakeRepairs) -> None:
    job = fake.stopped()
    with pytest.raises(OperationError, match="give the reason"):
        drop_jobs(fake.session, [job], by("anna"))
    assert drop_jobs(fake.session, [job], ANNA).complete
    assert fake.jobs[job].status == JobStatus.DROPPED
    assert drop_jobs(fake.session, [job], ANNA).answers == [RepairAnswer(job, "wrong_state", JobStatus.DROPPED)]


def test_a_purge_takes_whatever_has_ended_and_nothing_that_lives(fake: FakeRepairs) -> None:
    dropped, waiting = fake.stopped(JobStatus.DROPPED), fake.add()
    assert [answer.result for answer in purge_jobs(fake.session, [dropped, waiting], ANNA).answers] == [
        "accepted",
        "wrong_state",
    ]
    assert list(fake.jobs) == [waiting]


# ── edits on the way ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_resurrection_may_edit(fake: FakeRepairs) -> None:
    job = fake.stopped()
    asked: list[str] = []
    resurrect_jobs(
        fake.session,
        [job],
        ANNA,
        edits=Edits(payload="[]", priority=99),
        check=lambda _job, payload: asked.append(payload),
    )
    assert (fake.jobs[job].payload, fake.jobs[job].priority, asked) == ("[]", 99, ["[]"])


def test_a_payload_that_does_not_fit_resurrects_nothing(fake: FakeRepairs) -> None:
    def refuse(_job: JobView, _payload: str) -> None:
        raise OperationError("does not fit")

    with pytest.raises(OperationError, match="does not fit"):
        resurrect_jobs(fake.session, [fake.stopped()], ANNA, edits=Edits(payload="[]"), check=refuse)
    assert fake.calls == []


def test_many_jobs_share_a_priority_but_not_a_payload(fake: FakeRepairs) -> None:
    jobs = [fake.stopped(), fake.stopped()]
    with pytest.raises(OperationError, match="a payload is for one job: 2 jobs cannot share it"):
        resurrect_jobs(fake.session, jobs, ANNA, edits=Edits(payload="[]"))
    assert resurrect_jobs(fake.session, jobs, ANNA, edits=Edits(priority=5)).complete
    assert [fake.jobs[job].priority for job in jobs] == [5, 5]


def test_edits_that_name_nothing_are_none(fake: FakeRepairs) -> None:
    resurrect_jobs(fake.session, [fake.stopped()], ANNA, edits=Edits())
    assert fake.calls[0].more == {"edits": None, "without_key": False}


# ── by filter ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_preview_counts_chooses_the_newest_and_says_what_is_left_out(fake: FakeRepairs) -> None:
    jobs = [fake.stopped() for _ in range(15)]
    found = preview_jobs(fake.session, DlqFilter(), Action.PURGE, 12)
    assert (found.matched, found.affected, found.truncated, found.more) == (15, 12, True, False)
    assert found.ids == jobs[:2:-1]
    assert found.sample == found.ids[:10]
    whole = preview_jobs(fake.session, DlqFilter())
    assert (whole.affected, whole.truncated, len(whole.ids)) == (15, False, 15)


def test_a_filter_means_every_word_of_it(fake: FakeRepairs) -> None:
    wanted = fake.stopped(JobStatus.ZOMBIE, failure_reason=FailureReason.ZOMBIE, tags="vip", error_message="100% full")
    fake.stopped(JobStatus.ZOMBIE, failure_reason=FailureReason.ZOMBIE, tags="vip", error_message="1000 full")
    fake.stopped(tags="vip", error_message="100% full")
    where = DlqFilter(
        reason=FailureReason.ZOMBIE, tag="vip", search="100%", failed_from=NOW - timedelta(days=1), failed_until=NOW
    )
    assert preview_jobs(fake.session, where, Action.RESURRECT).ids == [wanted]


def test_dropped_jobs_do_not_stand_in_the_way_of_a_resurrection_by_filter(fake: FakeRepairs) -> None:
    """The newest hundred being final must not keep the next ones from ever being reached (the kind of C4)."""
    jobs = [fake.stopped(status) for status in (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE)]
    for _ in range(3):
        fake.stopped(JobStatus.DROPPED)
    found = preview_jobs(fake.session, DlqFilter(), Action.RESURRECT, 3)
    assert (found.ids, found.matched, found.truncated) == (jobs[::-1], 3, False)
    assert resurrect_jobs(fake.session, found.ids, ANNA).complete
    assert preview_jobs(fake.session, DlqFilter(), Action.PURGE, 3).matched == 3


def test_the_last_to_stop_come_first_whatever_their_states_and_ids(fake: FakeRepairs) -> None:
    jobs = [fake.stopped(status) for status in (JobStatus.ZOMBIE, JobStatus.FAILED, JobStatus.ZOMBIE)]
    late = fake.add(
        id="0" * 26, pillar=Pillar.DLQ, status=JobStatus.FAILED, finished_at=NOW, failure_reason=FailureReason.TIMEOUT
    )
    assert preview_jobs(fake.session, DlqFilter(), Action.RESURRECT, 3).ids == [late, jobs[2], jobs[1]]
    only = preview_jobs(fake.session, DlqFilter(status=JobStatus.ZOMBIE), Action.RESURRECT, 1)
    assert (only.ids, only.matched) == ([jobs[2]], 2)


def test_dropped_jobs_cannot_be_chosen_for_a_resurrection(fake: FakeRepairs) -> None:
    with pytest.raises(OperationError, match="a dropped job never runs again"):
        preview_jobs(fake.session, DlqFilter(status=JobStatus.DROPPED), Action.RESURRECT)
    assert fake.previews == []


def test_a_preview_is_advice_and_the_action_judges_anew(fake: FakeRepairs) -> None:
    job, gone = fake.stopped(), fake.stopped()

    def meanwhile() -> None:
        fake.jobs.pop(gone, None)

    fake.between = meanwhile
    found = preview_jobs(fake.session, DlqFilter(), Action.PURGE)
    assert purge_jobs(fake.session, found.ids, ANNA).counts == {
        "accepted": 1,
        "wrong_state": 0,
        "unknown": 1,
        "key_conflict": 0,
    }
    assert found.ids == [gone, job]


@pytest.mark.parametrize("maximum", [0, -1, 1_001])
def test_an_action_by_filter_touches_at_most_1000_jobs(fake: FakeRepairs, maximum: int) -> None:
    with pytest.raises(OperationError, match="at most 1 to 1,000 jobs"):
        preview_jobs(fake.session, DlqFilter(), Action.PURGE, maximum)


def test_more_than_can_be_counted_is_said_so(fake: FakeRepairs) -> None:
    class Crowd(FakeRepairs):
        def preview_dlq(self, where: DlqFilter, limit: int = 100) -> Any:
            found = super().preview_dlq(where, limit)
            return type(found)(9_000, False, found.ids)

    crowd = Crowd()
    found = preview_jobs(crowd.session, DlqFilter(), Action.RESURRECT)
    assert (found.matched, found.more, found.truncated) == (10_000, True, True)


def test_a_preview_for_nothing_in_particular_counts_every_status(fake: FakeRepairs) -> None:
    fake.stopped()
    fake.stopped(JobStatus.DROPPED)
    assert preview_jobs(fake.session, DlqFilter()).matched == 2
    assert Preview(action=None, matched=0, more=False, maximum=1, ids=[]).truncated is False
