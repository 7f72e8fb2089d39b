"""Operators at once, and operators beside workers and clients: every job is in one place, every change has one record."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import msgspec
import pytest

from chokaq.lifecycle.states import JobStatus, KeyScope, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import Enqueued, FetchedJob
from chokaq.store.repairs import Edits, RepairAnswer
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stopped import fail, stopped
from tests.support.stores import Sessions
from tests.support.together import together


def test_five_resurrections_at_once_give_one_live_job(sessions: Sessions, lab: Lab) -> None:
    several = sessions.many(5)
    job_id = stopped(several[0], JobStatus.FAILED)

    answers = together([partial(session.resurrect_jobs, [job_id], "ann") for session in several])

    assert lab.where(job_id) == [Pillar.HOT]
    assert Counter(answer.result for [answer] in answers) == {"accepted": 1, "wrong_state": 4}
    assert {answer.status for [answer] in answers} == {JobStatus.PENDING}
    assert len(several[0].list_audit(job_id)) == 1


def test_the_tries_of_one_request_at_once_are_one_order(sessions: Sessions, lab: Lab) -> None:
    """Design §3.10: the first try still runs when it is repeated."""
    several = sessions.many(4)
    ids, request = fail(several[0], new_jobs(20)), new_id()

    answers = together([partial(s.resurrect_jobs, ids, "ann", request=request) for s in several])

    assert answers == [[RepairAnswer(job_id, "accepted", JobStatus.PENDING, queue=QUEUE) for job_id in ids]] * 4
    assert (lab.count("JobsHot"), lab.count("AuditLog")) == (20, 20)


def test_resurrect_drop_and_purge_at_once_leave_each_job_in_one_place(sessions: Sessions, lab: Lab) -> None:
    several = sessions.many(6)
    ids = fail(several[0], new_jobs(30))

    def order(session: Session, number: int) -> list[RepairAnswer]:
        mine = ids[number * 5 :] + ids[: number * 5]
        if number % 3 == 0:
            return session.resurrect_jobs(mine, "ann")
        return session.drop_jobs(mine, "bob") if number % 3 == 1 else session.purge_jobs(mine, "cem")

    answers = together([partial(order, session, number) for number, session in enumerate(several)])

    accepted = Counter(
        (answer.id, number % 3) for number, part in enumerate(answers) for answer in part if answer.result == "accepted"
    )
    assert set(accepted.values()) == {1}, "nothing was done twice"
    for job_id in ids:
        back, dropped, gone = ((job_id, kind) in accepted for kind in range(3))
        assert not (back and (dropped or gone)), "resurrected and ended at once"
        stands = lab.where(job_id)
        assert stands == ([Pillar.HOT] if back else [] if gone else [Pillar.DLQ])
        assert back or dropped or gone
    actions = Counter((entry["Target"], entry["Action"]) for entry in lab.rows("AuditLog"))
    assert actions == {(job_id, ("resurrect", "drop", "purge")[kind]): 1 for job_id, kind in accepted}


@pytest.mark.parametrize("waiting", [True, False], ids=["pending", "failed"])
def test_edits_at_once_follow_one_another(sessions: Sessions, lab: Lab, waiting: bool) -> None:
    """The before of each is the after of the one that came first, and the last one stands."""
    several = sessions.many(4)
    job_id = several[0].enqueue_jobs([new_job()])[0].id if waiting else stopped(several[0], JobStatus.FAILED)

    def edit(session: Session, number: int) -> list[RepairAnswer]:
        return [
            session.edit_job(job_id, Edits(priority=10 * number + turn, payload=f"[{number},{turn}]"), "ann")
            for turn in range(5)
        ]

    answers = together([partial(edit, session, number) for number, session in enumerate(several, 1)])

    status = JobStatus.PENDING if waiting else JobStatus.FAILED
    assert answers == [[RepairAnswer(job_id, "accepted", status)] * 5] * 4
    entries = several[0].list_audit(job_id)[::-1]
    states = [tuple(msgspec.json.decode(text or "") for text in (entry.before, entry.after)) for entry in entries]
    assert len(states) == 20
    assert all(first[1] == second[0] for first, second in pairwise(states))
    row = lab.row(job_id, "JobsHot" if waiting else "JobsDLQ")
    assert (row["Priority"], row["PayloadHash"]) == (states[-1][1]["priority"], states[-1][1]["payload_hash"])


def test_edits_beside_claims_reach_a_job_before_its_worker_or_not_at_all(sessions: Sessions, lab: Lab) -> None:
    editor, worker = sessions.many(2)
    jobs = new_jobs(60)
    editor.enqueue_jobs(jobs)
    holder = Holder(worker)
    claimed: dict[str, FetchedJob] = {}
    edited: dict[str, str] = {}

    def claim() -> None:
        while len(claimed) < 60:
            claimed.update((job.id, job) for job in holder.fetch(3).jobs)

    def edit() -> None:
        for job in reversed(jobs):
            edited[job.id] = editor.edit_job(job.id, Edits(payload='"new"', priority=5), "ann").result

    together([claim, edit])

    for job in jobs:
        expected = ('"new"', 5) if edited[job.id] == "accepted" else (job.payload, job.priority)
        row = lab.row(job.id)
        assert (row["Payload"], row["Priority"]) == expected
        # The priority that the claim tells may be the one before on an engine that waits where SQL Server reads past.
        assert claimed[job.id].payload == expected[0]


def test_of_two_resurrections_that_want_one_key_one_wins(sessions: Sessions, lab: Lab) -> None:
    first, second = sessions.many(2)
    pairs = [[stopped(first, JobStatus.FAILED, new_job(idempotency_key=f"k{n}")) for _ in range(2)] for n in range(8)]
    one, other = ([pair[side] for pair in pairs] for side in range(2))

    answers = together([partial(first.resurrect_jobs, one, "ann"), partial(second.resurrect_jobs, other, "bob")])

    for pair, *both in zip(pairs, *answers, strict=True):
        assert sorted(answer.result for answer in both) == ["accepted", "key_conflict"]
        [winner] = [answer.id for answer in both if answer.result == "accepted"]
        [loser] = [answer for answer in both if answer.result == "key_conflict"]
        assert loser.holder == winner
        assert {tuple(lab.where(job_id)) for job_id in pair} == {(Pillar.HOT,), (Pillar.DLQ,)}


@pytest.mark.parametrize("scope", [KeyScope.ACTIVE, KeyScope.RETAINED])
def test_a_resurrection_and_an_enqueue_of_one_key_leave_one_live_job(
    sessions: Sessions, lab: Lab, scope: KeyScope
) -> None:
    """C43: neither sees an error, and only one of them has the key."""
    operator, client = sessions.many(2)
    keys = [f"k{n}" for n in range(15)]
    ids = [stopped(operator, JobStatus.FAILED, new_job(idempotency_key=key)) for key in keys]
    offered = [new_job(idempotency_key=key, key_scope=scope) for key in keys]

    def resurrect() -> list[RepairAnswer]:
        return [operator.resurrect_jobs([job_id], "ann")[0] for job_id in ids]

    def enqueue() -> list[Enqueued]:
        return [client.enqueue_jobs([job])[0] for job in reversed(offered)][::-1]

    calls: list[Callable[[], list[RepairAnswer] | list[Enqueued]]] = [resurrect, enqueue]
    back, accepted = together(calls)

    for job_id, job, repaired, answer in zip(ids, offered, back, accepted, strict=True):
        assert isinstance(repaired, RepairAnswer)
        assert isinstance(answer, Enqueued)
        if repaired.result == "accepted":
            assert (answer.id, answer.created) == (job_id, False)
        else:
            assert (repaired.result, repaired.holder) == ("key_conflict", job.id)
            assert (answer.id, answer.created) == (job.id, True)
    assert lab.count("JobsHot") == 15


def test_a_job_on_its_way_back_is_never_reported_missing(sessions: Sessions) -> None:
    """Design §3.1: from the DLQ to Hot and back again, under readers that look all the time."""
    operator, asker = sessions.many(2)
    ids = fail(operator, new_jobs(5))
    over: list[bool] = []

    def move() -> int:
        try:
            for _ in range(15):
                operator.resurrect_jobs(ids, "ann")
                operator.cancel_jobs(ids, "ann")
        finally:
            over.append(True)
        return 0

    def ask() -> int:
        missing = 0
        while not over:
            missing += asker.get_statuses(ids).count(None)
            missing += sum(asker.get_job(job_id) is None for job_id in ids)
            answers = [asker.edit_job(job_id, Edits(priority=1), "bob") for job_id in ids]
            missing += sum(answer.result == "unknown" for answer in answers)
        return missing

    assert together([move, ask]) == [0, 0]
