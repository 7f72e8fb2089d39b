"""Run claims: one unfinished run per key, a marker when it has completed, and nothing for somebody who lost the lease (G15)."""

from functools import partial

import pytest

from chokaq.lifecycle.states import Answer, DeathCause, JobStatus
from chokaq.store.claims import ClaimAnswer, Claiming, Completion, RunClaim
from chokaq.store.errors import StoreError, StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, CrashPolicy, Held
from tests.support.holder import Holder
from tests.support.jobs import death, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

HOUR = 3_600_000
TTL = HOUR // 2


def run_jobs(session: Session, count: int) -> tuple[Holder, list[Held]]:
    """A worker that is running that many jobs."""
    session.enqueue_jobs(new_jobs(count))
    holder = Holder(session)
    return holder, holder.take_all(count)


def claim(held: Held, key: str = "k", ttl_ms: int = TTL) -> RunClaim:
    return RunClaim(key, held.id, held.lease, ttl_ms)


def ask(holder: Holder, held: Held, key: str = "k", ttl_ms: int = TTL) -> ClaimAnswer:
    [answer] = holder.session.claim_runs(holder.worker, [claim(held, key, ttl_ms)])
    return answer


def complete(
    holder: Holder, held: Held, key: str = "k", ttl_ms: int | None = HOUR, result: str | None = None
) -> Answer:
    [answer] = holder.session.complete_runs(holder.worker, [Completion(key, held.id, held.lease, ttl_ms, result)])
    return answer


def release(holder: Holder, held: Held, key: str = "k") -> Answer:
    [answer] = holder.session.release_claims(holder.worker, [claim(held, key)])
    return answer


def crash(session: Session, holder: Holder) -> None:
    """The holder's process dies; its jobs go back to Pending, due at once."""
    policy = CrashPolicies(default=CrashPolicy(on_crash="retry", backoff_ms=(0,)))
    session.release_worker(Holder(session, "").worker, death(holder.id, DeathCause.CRASH, signal=9), policy)


def test_no_claims_no_answers(session: Session) -> None:
    worker = Holder(session).worker

    assert session.claim_runs(worker, []) == []
    assert session.renew_claims(worker, []) == session.complete_runs(worker, []) == []
    assert session.release_claims(worker, []) == []
    assert session.list_claims("0" * 26) == []


def test_one_job_claims_and_the_other_is_told_who_holds_the_key_and_until_when(session: Session) -> None:
    holder, (first, second) = run_jobs(session, 2)

    mine, other = ask(holder, first), ask(holder, second)

    assert (mine.state, mine.holder, mine.result) == (Claiming.CLAIMED, first.id, None)
    assert (other.state, other.holder, other.result) == (Claiming.BUSY, first.id, None)
    assert other.expires_in_ms is not None
    assert TTL - 60_000 < other.expires_in_ms <= TTL


def test_a_repeated_claim_answers_as_its_first_try(session: Session) -> None:
    """C11: an answer that was lost is asked for again with the same arguments."""
    holder, (held,) = run_jobs(session, 1)

    assert ask(holder, held).state is ask(holder, held).state is Claiming.CLAIMED
    assert [(view.key, view.lease, view.state) for view in session.list_claims(held.id)] == [
        ("k", held.lease, "running")
    ]


def test_g15_a_job_enters_its_own_claim_again_with_a_newer_lease(session: Session) -> None:
    first, (held,) = run_jobs(session, 1)
    ask(first, held)
    crash(session, first)
    second = Holder(session)
    again = second.take_one()

    assert again.lease > held.lease
    assert ask(second, again).state is Claiming.CLAIMED
    [view] = session.list_claims(held.id)
    assert (view.lease, view.worker_id) == (again.lease, second.id)


def test_an_execution_that_lost_its_lease_can_do_nothing_to_a_claim(session: Session, lab: Lab) -> None:
    first, (held,) = run_jobs(session, 1)
    ask(first, held)
    crash(session, first)
    second = Holder(session)
    again = second.take_one()
    ask(second, again)
    before = lab.snapshot("RunClaims")

    assert ask(first, held).state is Claiming.STALE
    assert session.renew_claims(first.worker, [claim(held)]) == [Answer.STALE]
    assert complete(first, held) is Answer.STALE
    assert release(first, held) is Answer.STALE
    assert lab.snapshot("RunClaims") == before


@pytest.mark.parametrize("state", ["pending", "fetched", "ended"])
def test_a_job_that_does_not_run_claims_nothing(session: Session, lab: Lab, state: str) -> None:
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.claim_one()
    if state == "ended":
        holder.start([held])
        holder.succeed([held])
    if state == "pending":
        crash(session, holder)

    assert ask(holder, held).state is Claiming.STALE
    assert lab.rows("RunClaims") == []


def test_a_completed_run_answers_done_with_its_result_until_the_marker_expires(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)

    assert complete(holder, first, result='{"sent":"\\u00e9"}') is Answer.APPLIED

    answer = ask(holder, second)
    assert (answer.state, answer.holder, answer.result) == (Claiming.DONE, first.id, '{"sent":"\\u00e9"}')
    assert answer.expires_in_ms is not None
    assert HOUR - 60_000 < answer.expires_in_ms <= HOUR
    lab.age_all("RunClaims", "ExpiresAtUtc", HOUR + 1)
    assert ask(holder, second).state is Claiming.CLAIMED
    [view] = session.list_claims(second.id)
    assert (view.state, view.done_at, view.result) == ("running", None, None)


def test_a_marker_without_time_to_live_answers_for_ever(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)
    complete(holder, first, ttl_ms=None)

    answer = ask(holder, second)

    assert (answer.state, answer.expires_in_ms) == (Claiming.DONE, None)
    assert session.purge_leftovers() == 0
    assert lab.count("RunClaims") == 1


def test_a_job_whose_own_run_completed_is_told_so(session: Session) -> None:
    """Its process died between the marker and the archive: the work is done and must not be done again."""
    first, (held,) = run_jobs(session, 1)
    ask(first, held)
    complete(first, held)
    crash(session, first)
    second = Holder(session)

    assert ask(second, second.take_one()).state is Claiming.DONE


def test_a_repeated_completion_is_applied_and_changes_nothing(session: Session, lab: Lab) -> None:
    holder, (held,) = run_jobs(session, 1)
    ask(holder, held)
    complete(holder, held, result="1")
    before = lab.snapshot("RunClaims")

    assert complete(holder, held, result="1") is Answer.APPLIED
    assert lab.snapshot("RunClaims") == before


def test_a_run_without_a_claim_completes_nothing(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)

    assert complete(holder, second) is Answer.STALE
    assert complete(holder, first, key="other") is Answer.STALE
    assert [row["State"] for row in lab.rows("RunClaims")] == ["running"]


def test_a_released_key_is_free_and_a_repeat_says_so_too(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)

    assert release(holder, first) is Answer.APPLIED
    assert release(holder, first) is Answer.APPLIED
    assert lab.rows("RunClaims") == []
    assert ask(holder, second).state is Claiming.CLAIMED
    assert release(holder, first) is Answer.STALE, "the key is another job's by now"
    assert ask(holder, first).state is Claiming.BUSY


def test_a_marker_is_not_released(session: Session) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)
    complete(holder, first)

    assert release(holder, first) is Answer.STALE
    assert ask(holder, second).state is Claiming.DONE


def test_a_claim_that_expired_is_taken_over_by_another_job(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)
    lab.age_all("RunClaims", "ExpiresAtUtc", TTL + 1)

    assert ask(holder, second).state is Claiming.CLAIMED
    assert session.renew_claims(holder.worker, [claim(first)]) == [Answer.STALE]
    assert complete(holder, first) is Answer.STALE


def test_a_renewal_moves_the_expiry_also_of_a_claim_that_expired_and_was_taken_by_nobody(
    session: Session, lab: Lab
) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)
    lab.age_all("RunClaims", "ExpiresAtUtc", TTL + HOUR)
    assert session.purge_leftovers() == 0, "its holder may come back"

    assert session.renew_claims(holder.worker, [claim(first)]) == [Answer.APPLIED]

    answer = ask(holder, second)
    assert answer.state is Claiming.BUSY
    assert answer.expires_in_ms is not None
    assert answer.expires_in_ms > TTL - 60_000


def test_a_renewal_of_nothing_or_of_a_completed_run_is_stale(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)
    complete(holder, first)
    before = lab.snapshot("RunClaims")

    answers = session.renew_claims(holder.worker, [claim(first), claim(second, "none")])

    assert answers == [Answer.STALE, Answer.STALE]
    assert lab.snapshot("RunClaims") == before


def test_a_set_of_claims_is_answered_in_order_each_for_itself(session: Session) -> None:
    holder, held = run_jobs(session, 5)
    ask(holder, held[0], "busy")
    ask(holder, held[0], "done")
    complete(holder, held[0], "done", result='"r"')

    wanted = [("new", held[1]), ("done", held[2]), ("busy", held[3]), ("other", Held(held[4].id, held[4].lease + 1))]
    answers = session.claim_runs(holder.worker, [claim(job, key) for key, job in wanted])

    assert [answer.state for answer in answers] == [Claiming.CLAIMED, Claiming.DONE, Claiming.BUSY, Claiming.STALE]
    assert [answer.result for answer in answers] == [None, '"r"', None, None]
    states = session.complete_runs(
        holder.worker, [Completion("new", held[1].id, held[1].lease, HOUR, "[1]"), Completion("busy", held[3].id, 1, 1)]
    )
    assert states == [Answer.APPLIED, Answer.STALE]
    assert [view.result for view in session.list_claims(held[1].id)] == ["[1]"]


def test_a_job_may_hold_several_keys_and_they_are_listed_by_key(session: Session) -> None:
    holder, (held,) = run_jobs(session, 1)
    session.claim_runs(holder.worker, [claim(held, "b"), claim(held, "a")])
    complete(holder, held, "a", result="null")

    views = session.list_claims(held.id)

    assert [(view.key, view.state, view.result) for view in views] == [("a", "done", "null"), ("b", "running", None)]
    assert views[0].done_at is not None
    assert views[0].expires_at is not None
    assert (views[0].expires_at - views[0].done_at).total_seconds() == HOUR / 1000


@pytest.mark.parametrize("key", ["почта:1", 'quo"te\\back', "x" * 255, "\ue000\ue001 private", "a:B", "😀" * 127])
def test_any_text_may_be_a_key_and_keys_distinguish_case(session: Session, key: str) -> None:
    holder, (first, second) = run_jobs(session, 2)

    assert ask(holder, first, key).state is Claiming.CLAIMED
    assert ask(holder, second, key).state is Claiming.BUSY
    assert [view.key for view in session.list_claims(first.id)] == [key]
    swapped = key.swapcase()
    assert ask(holder, second, swapped).state is (Claiming.BUSY if swapped == key else Claiming.CLAIMED)


def test_a_large_result_comes_back_byte_for_byte(session: Session) -> None:
    holder, (held,) = run_jobs(session, 1)
    ask(holder, held)
    result = '"' + "".join(chr(35 + n % 50) for n in range(90_000)) + '\\n\\u0000"'

    complete(holder, held, result=result)

    assert session.list_claims(held.id)[0].result == result


def test_a_time_to_live_of_more_than_25_days_does_not_overflow(session: Session) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first, ttl_ms=400 * 24 * HOUR + 7)
    answer = ask(holder, second)
    assert answer.expires_in_ms is not None
    assert 399 * 24 * HOUR < answer.expires_in_ms <= 400 * 24 * HOUR + 7

    complete(holder, first, ttl_ms=500 * 24 * HOUR)

    answer = ask(holder, second)
    assert answer.expires_in_ms is not None
    assert 499 * 24 * HOUR < answer.expires_in_ms <= 500 * 24 * HOUR


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (RunClaim("x" * 256, "J" * 26, 1, 1), "1 to 255"),
        (RunClaim("", "J" * 26, 1, 1), "1 to 255"),
        (RunClaim("a\0", "J" * 26, 1, 1), "NUL"),
        (RunClaim("a", "J" * 26, 1, -1), "time to live"),
    ],
)
def test_what_no_store_can_hold_is_refused_by_name(session: Session, bad: RunClaim, message: str) -> None:
    worker = Holder(session).worker

    with pytest.raises(StoreRefused, match=message):
        session.claim_runs(worker, [bad])
    with pytest.raises(StoreRefused, match="twice"):
        session.renew_claims(worker, [RunClaim("a", "J" * 26, 1, 1)] * 2)
    with pytest.raises(StoreRefused, match="ASCII"):
        session.complete_runs(worker, [Completion("a", "J" * 26, 1, 1, '"é"')])


def test_of_many_jobs_that_claim_one_key_at_once_one_gets_it(session: Session, sessions: Sessions) -> None:
    """The reference's «concurrent duplicates run once»; the answers of the others name it."""
    holder, held = run_jobs(session, 6)

    def race(one: Session, job: Held) -> list[ClaimAnswer]:
        return [one.claim_runs(holder.worker, [claim(job, key)])[0] for key in ("a", "b", "c", "d")]

    answers = together([partial(race, one, job) for one, job in zip(sessions.many(6), held, strict=True)])

    for turn in range(4):
        of_key = [found[turn] for found in answers]
        assert sorted(answer.state for answer in of_key) == [Claiming.CLAIMED] + [Claiming.BUSY] * 5
        assert len({answer.holder for answer in of_key}) == 1


def test_racing_sets_that_share_keys_neither_fail_nor_share_one(session: Session, sessions: Sessions) -> None:
    """C27: a race for keys is answered, it is no error."""
    holder, held = run_jobs(session, 5)
    keys = [f"key-{n}" for n in range(20)]

    def race(one: Session, job: Held, turn: int) -> list[Claiming]:
        mixed = keys[turn:] + keys[:turn]
        answers = one.claim_runs(holder.worker, [claim(job, key) for key in mixed])
        return [answer.state for answer in answers]

    states = together([partial(race, one, held[n], 4 * n) for n, one in enumerate(sessions.many(5))])

    flat = [state for found in states for state in found]
    assert flat.count(Claiming.CLAIMED) == 20
    assert flat.count(Claiming.BUSY) == 80


def test_claims_that_expired_long_ago_and_expired_markers_are_purged_in_batches(session: Session, lab: Lab) -> None:
    """C33. What has not expired stays, and so does what never does."""
    holder, held = run_jobs(session, 1)
    session.claim_runs(holder.worker, [claim(held[0], f"k{n}") for n in range(9)])
    for n in (0, 1, 2, 3, 4):
        complete(holder, held[0], f"k{n}", ttl_ms=None if n == 4 else HOUR)
    lab.age_all("RunClaims", "ExpiresAtUtc", 2 * HOUR, "ClaimKey IN ('k0', 'k1', 'k2')")
    lab.age_all("RunClaims", "ExpiresAtUtc", 26 * HOUR, "ClaimKey IN ('k5', 'k6')")
    lab.age_all("RunClaims", "ExpiresAtUtc", 2 * HOUR, "ClaimKey = 'k7'")

    assert session.purge_leftovers(2) == 4
    assert session.purge_leftovers(2) == 1
    assert session.purge_leftovers(2) == 0
    assert sorted(row["ClaimKey"] for row in lab.rows("RunClaims")) == ["k3", "k4", "k7", "k8"]


def test_a_marker_outlives_its_job(session: Session, lab: Lab) -> None:
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first)
    complete(holder, first)
    holder.succeed([first])
    lab.age(first.id, "FinishedAtUtc", HOUR, "JobsArchive")

    assert session.purge_archive(None, 1_000) == 1
    assert ask(holder, second).state is Claiming.DONE


def test_a_claim_that_cannot_be_written_has_not_happened(session: Session, lab: Lab) -> None:
    """C28."""
    holder, (first, second) = run_jobs(session, 2)
    ask(holder, first, "held")
    before = lab.snapshot("RunClaims")

    with lab.broken("RunClaims", "INSERT"), pytest.raises(StoreError):
        session.claim_runs(holder.worker, [claim(first, "held"), claim(second, "new")])
    with lab.broken("RunClaims", "UPDATE"):
        for call in (session.renew_claims, session.claim_runs):
            with pytest.raises(StoreError):
                call(holder.worker, [claim(first, "held")])
        with pytest.raises(StoreError):
            complete(holder, first, "held")
    with lab.broken("RunClaims", "DELETE"), pytest.raises(StoreError):
        release(holder, first, "held")

    assert lab.snapshot("RunClaims") == before
    assert ask(holder, second, "new").state is Claiming.CLAIMED
    view = session.get_job(first.id)
    assert view is not None
    assert view.status is JobStatus.PROCESSING
