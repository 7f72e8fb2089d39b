"""The fleet-wide cap (design §3.9): exact, counted in leases held, and it never stops what runs."""

from collections.abc import Callable
from functools import partial

import pytest

from chokaq.lifecycle.states import Answer
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, Figures, Held, QueueChange, Release, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, QUEUE, new_jobs
from tests.support.lab import Lab
from tests.support.processes import run_programs
from tests.support.stores import Sessions
from tests.support.together import together

Settle = Callable[[Holder, list[Held]], object]


def test_a_claim_takes_at_most_the_difference(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(10))
    first, second = Holder(session), Holder(session)

    assert len(first.claim(3, cap=5)) == 3
    assert len(second.claim(10, cap=5)) == 2
    fetch = first.fetch(10, cap=5)
    assert fetch.jobs == []
    assert lab.leases(QUEUE) == 5


def test_fetched_and_processing_both_count_and_other_queues_do_not(session: Session) -> None:
    session.enqueue_jobs(new_jobs(10) + new_jobs(5, queue="other"))
    Holder(session, "other").take(5)
    holder = Holder(session)
    holder.take(2, cap=4)
    holder.claim(1, cap=4)

    assert len(holder.claim(10, cap=4)) == 1


def _succeed(holder: Holder, held: list[Held]) -> object:
    return holder.session.archive_succeeded(holder.worker, held)


@pytest.mark.parametrize(
    "settle",
    [
        _succeed,
        lambda holder, held: holder.session.release_jobs(holder.worker, [Release(h.id, h.lease, 9_000) for h in held]),
        lambda holder, held: holder.session.reschedule_for_retry(
            holder.worker, [Retry(h.id, h.lease, 9_000, ERROR) for h in held]
        ),
    ],
    ids=["succeed", "release", "retry"],
)
def test_whoever_settles_makes_room(session: Session, settle: Settle) -> None:
    session.enqueue_jobs(new_jobs(10))
    holder = Holder(session)
    held = holder.take(4, cap=4)
    assert holder.claim(5, cap=4) == []

    settle(holder, held[:3])

    assert len(holder.claim(5, cap=4)) == 3


def test_the_override_wins_over_the_yaml_both_ways_until_cleared(session: Session) -> None:
    session.enqueue_jobs(new_jobs(20))
    holder = Holder(session)
    session.set_queue(QUEUE, QueueChange(fleet_max_workers=2), "ann")
    assert len(holder.claim(10, cap=5)) == 2
    assert holder.fetch(10).jobs == [], "the override holds where the YAML has no cap"
    session.set_queue(QUEUE, QueueChange(fleet_max_workers=7), "ann")
    assert len(holder.claim(10, cap=5)) == 5

    session.set_queue(QUEUE, QueueChange(fleet_max_workers=None), "ann")

    assert holder.claim(10, cap=5) == []
    assert len(holder.claim(3)) == 3


def test_lowering_the_cap_stops_nothing_that_runs(session: Session) -> None:
    session.enqueue_jobs(new_jobs(6))
    holder = Holder(session)
    held = holder.take(5)
    session.set_queue(QUEUE, QueueChange(fleet_max_workers=1), "ann")

    answers, told = session.keep_alive(holder.worker, [Beat(h.id, h.lease) for h in held], Figures())

    assert (answers, told) == ([Answer.APPLIED] * 5, [])
    assert holder.claim(5) == []
    holder.succeed(held[:4])
    assert holder.claim(5) == [], "one lease is still held"
    holder.succeed(held[4:])
    assert len(holder.claim(5)) == 1


def test_a_cap_of_nothing_claims_nothing(session: Session) -> None:
    session.enqueue_jobs(new_jobs(2))
    session.set_queue(QUEUE, QueueChange(fleet_max_workers=0), "ann")

    assert Holder(session).claim(5) == []


def test_a_repeated_number_claims_no_second_share(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(10))
    holder = Holder(session)
    held = holder.take(3, cap=3)
    holder.succeed(held[:1])

    assert session.fetch_jobs(holder.worker, holder.request, 3, 3).jobs == []
    assert lab.leases(QUEUE) == 2


def test_racing_fetchers_never_exceed_the_cap(session: Session, sessions: Sessions, lab: Lab) -> None:
    """C41, C7: two processes exceed a global limit. Exact, first of all when everyone asks at once."""
    session.enqueue_jobs(new_jobs(60))
    holders = [Holder(s) for s in sessions.many(8)]

    claimed = together([partial(h.claim, 4, cap=7) for h in holders])

    ids = [held.id for part in claimed for held in part]
    assert len(ids) == len(set(ids)) == lab.leases(QUEUE)
    assert len(ids) <= 7
    late = holders[0].claim(10, cap=7)
    assert lab.leases(QUEUE) == len(ids) + len(late) == 7


def test_the_cap_is_exact_while_others_settle(session: Session, sessions: Sessions, lab: Lab) -> None:
    """C41. Settling never touches `Queues`; so fetch and settle race for real, and no instant may show more than the cap."""
    total, cap, crew = 150, 5, 5
    session.enqueue_jobs(new_jobs(total))
    holders = [Holder(s) for s in sessions.many(crew)]
    done = [0] * crew
    peak = [0]

    def work(index: int) -> None:
        while sum(done) < total:
            held = holders[index].take(3, cap=cap)
            holders[index].succeed(held)
            done[index] += len(held)

    def watch() -> None:
        while sum(done) < total:
            peak[0] = max(peak[0], lab.leases(QUEUE))

    crew_and_watch: list[Callable[[], None]] = [*(partial(work, index) for index in range(crew)), watch]
    together(crew_and_watch)

    assert sum(done) == total
    assert peak[0] <= cap
    assert lab.count("JobsArchive") == total


@pytest.mark.processes
def test_racing_processes_never_exceed_the_cap(session: Session, store_options: DatabaseSettings, lab: Lab) -> None:
    """C41 with real processes: each claims, runs and settles under a cap of 4; each reports the leases it saw held."""
    session.enqueue_jobs(new_jobs(80))

    reports = run_programs("work_under_cap", 4, store_options, queue=QUEUE, cap=4, size=3)

    assert sum(report["done"] for report in reports) == 80
    assert max(report["most_seen"] for report in reports) <= 4
    assert lab.count("JobsArchive") == 80
