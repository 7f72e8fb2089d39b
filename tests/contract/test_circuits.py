"""What children say of their circuits, and what operators order (G14: the reference's circuits are one process's secret)."""

import json
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import Answer, FailureReason, JobStatus, Pillar
from chokaq.store.circuits import CircuitChange, CircuitOrder
from chokaq.store.errors import StoreError, StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, Registration, Release
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, TYPE, death, new_job, new_jobs, worker_info
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

CLOSED, OPEN, HALF_OPEN = CircuitState
ODD = '"odd\\key" [%_]'
DAY = 86_400_000


def change(type_key: str = TYPE, state: CircuitState = OPEN, failures: int = 5, **fields: object) -> CircuitChange:
    """A circuit that has just opened, unless `fields` say otherwise."""
    given = {"type_key": type_key, "state": state, "failures": failures, "generation": 1, **fields}
    return msgspec.convert(given, CircuitChange)


# ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_what_a_child_says_is_seen_with_its_host_and_queue(session: Session) -> None:
    holder = Holder(session)
    session.report_circuits(
        holder.worker, [change(changed_ms=90_000, next_probe_ms=20_000, generation=7, last_error="OSError")]
    )

    [seen] = session.list_circuits().circuits

    assert (seen.type_key, seen.worker_id, seen.queue, seen.host) == (TYPE, holder.id, QUEUE, "host-1")
    assert (seen.state, seen.failures, seen.generation, seen.last_error) == (OPEN, 5, 7, "OSError")
    assert seen.next_probe_ms is not None
    assert 0 < seen.next_probe_ms <= 20_000
    registered = session.list_workers()[0].started_at
    assert 85 < (registered - seen.changed_at).total_seconds() < 91


def test_the_last_word_counts_and_a_repeat_is_harmless(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change(next_probe_ms=0, last_error="OSError"), change("b.v1", HALF_OPEN)])
    for _ in range(2):
        session.report_circuits(holder.worker, [change(state=CLOSED, failures=0, generation=2)])

    first, second = session.list_circuits().circuits

    assert (first.type_key, first.state) == ("b.v1", HALF_OPEN)
    assert (second.type_key, second.state, second.failures, second.generation) == (TYPE, CLOSED, 0, 2)
    assert (second.next_probe_ms, second.last_error) == (None, None)
    assert lab.count("Circuits") == 2


def test_type_keys_and_errors_arrive_faithfully_and_keys_in_lower_case(session: Session) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change(ODD.upper(), last_error='мод."Ошибка"\n😀')])

    [seen] = session.list_circuits().circuits

    assert (seen.type_key, seen.last_error) == (ODD, 'мод."Ошибка"\n😀')


def test_an_empty_report_and_one_of_a_thousand(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [])
    assert lab.count("Circuits") == 0
    session.report_circuits(holder.worker, [change(f"t.{n}") for n in range(1_000)])
    assert len(session.list_circuits().circuits) == 1_000
    with pytest.raises(StoreRefused):
        session.report_circuits(holder.worker, [change(f"t.{n}") for n in range(1_001)])


def test_the_open_ones_come_first_then_those_being_tried(session: Session) -> None:
    one, other = Holder(session), Holder(session, "reports")
    session.report_circuits(one.worker, [change("a.v1", CLOSED, 1), change("b.v1", HALF_OPEN), change("c.v1")])
    session.report_circuits(other.worker, [change("a.v1")])

    seen = session.list_circuits().circuits

    assert [(view.type_key, view.queue, view.state) for view in seen] == [
        ("a.v1", "reports", OPEN), ("c.v1", QUEUE, OPEN), ("b.v1", QUEUE, HALF_OPEN), ("a.v1", QUEUE, CLOSED),
    ]  # fmt: skip


def test_an_ended_worker_says_nothing_more_and_what_it_said_is_purged(session: Session, lab: Lab) -> None:
    by, gone, alive = Holder(session, ""), Holder(session), Holder(session)
    for holder in (gone, alive):
        session.report_circuits(holder.worker, [change(), change("b.v1")])
    session.release_worker(by.worker, death(gone.id, "crash"), CrashPolicies())

    assert {view.worker_id for view in session.list_circuits().circuits} == {alive.id}
    session.report_circuits(gone.worker, [change("c.v1")])
    assert lab.count("Circuits", f"WorkerId = '{gone.id}'") == 2

    assert session.purge_leftovers() == 2
    assert {row["WorkerId"] for row in lab.rows("Circuits")} == {alive.id}
    assert session.purge_leftovers() == 0


def test_a_worker_that_never_registered_leaves_nothing_behind(session: Session, lab: Lab) -> None:
    session.report_circuits(Registration(new_id(), QUEUE, 1), [change()])
    assert lab.count("Circuits") == 0


# ── orders ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_an_order_reaches_every_child_by_its_number(session: Session) -> None:
    holder, other = Holder(session), Holder(session, "reports")
    assert holder.fetch(0).circuit_order == 0
    assert session.read_circuit_orders().number == 0

    order = session.force_circuit(TYPE, Forced.OPEN, "ann", "the provider is down")

    assert (order.type_key, order.forced, order.actor, order.reason) == (
        TYPE,
        Forced.OPEN,
        "ann",
        "the provider is down",
    )
    assert holder.fetch(0).circuit_order == other.fetch(0).circuit_order == order.number > 0
    told = session.read_circuit_orders()
    assert (told.number, told.orders) == (order.number, [order])
    assert session.list_circuits().orders == [order]


def test_every_kind_of_fetch_tells_the_number(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(2))
    number = session.force_circuit(TYPE, Forced.CLOSED, "ann").number

    assert (len(holder.fetch(1).jobs), holder.fetch(1).circuit_order) == (1, number)
    assert session.fetch_jobs(holder.worker, 1, 1).circuit_order == number
    assert holder.fetch(1).circuit_order == number
    assert holder.fetch(1, 5).circuit_order == number
    late = Holder(session)
    assert late.fetch(0).circuit_order == number, "a child started later, too"


def test_numbers_rise_over_all_types_and_a_taken_back_order_has_one(session: Session) -> None:
    numbers = [
        session.force_circuit("a.v1", Forced.OPEN, "ann").number,
        session.force_circuit("b.v1", Forced.CLOSED, "ann").number,
        session.force_circuit("a.v1", Forced.NO, "ann").number,
    ]
    assert numbers == sorted(set(numbers))

    told = session.read_circuit_orders()

    assert told.number == numbers[-1]
    assert [(order.type_key, order.forced) for order in told.orders] == [("b.v1", Forced.CLOSED)]


def test_the_type_key_of_an_order_is_the_same_in_any_case(session: Session) -> None:
    session.force_circuit("Email.Send.V1", Forced.OPEN, "ann")
    session.force_circuit("EMAIL.send.v1", Forced.CLOSED, "bob")
    assert [(order.type_key, order.actor) for order in session.read_circuit_orders().orders] == [
        ("email.send.v1", "bob")
    ]


def test_odd_keys_and_reasons_arrive_faithfully(session: Session) -> None:
    order = session.force_circuit(ODD, Forced.OPEN, "Анна", "“storm” 😀\nsee #7")
    assert (order.type_key, order.actor, order.reason) == (ODD, "Анна", "“storm” 😀\nsee #7")
    assert session.list_circuits().orders == [order]
    assert session.force_circuit(ODD, Forced.OPEN, "ann", "").reason is None


def test_c48_every_order_is_audited_with_before_and_after(session: Session) -> None:
    session.force_circuit(TYPE, Forced.OPEN, "ann", "storm")
    session.force_circuit(TYPE, Forced.CLOSED, "bob", "it is over")
    session.force_circuit(TYPE, Forced.NO, "cid")

    entries = session.list_audit(TYPE)[::-1]

    assert [(entry.actor, entry.action, entry.reason) for entry in entries] == [
        ("ann", "force_circuit", "storm"), ("bob", "force_circuit", "it is over"), ("cid", "force_circuit", None),
    ]  # fmt: skip
    states = [(json.loads(entry.before or ""), json.loads(entry.after or "")) for entry in entries]
    words = [(before["forced"], after["forced"]) for before, after in states]
    assert words == [(None, "open"), ("open", "closed"), ("closed", None)]


def test_a_repeat_changes_nothing_even_when_another_order_came_between(session: Session, lab: Lab) -> None:
    request = new_id()
    first = session.force_circuit(TYPE, Forced.OPEN, "ann", request=request)
    assert session.force_circuit(TYPE, Forced.OPEN, "ann", request=request) == first
    second = session.force_circuit(TYPE, Forced.CLOSED, "bob", request=new_id())
    before = lab.snapshot("CircuitOrders", "AuditLog")

    again = session.force_circuit(TYPE, Forced.OPEN, "ann", request=request)

    assert again == second, "it answers with the order that stands"
    assert lab.snapshot("CircuitOrders", "AuditLog") == before


@pytest.mark.parametrize(
    "wrong",
    [
        lambda session: session.force_circuit("", Forced.OPEN, "ann"),
        lambda session: session.force_circuit("ü", Forced.OPEN, "ann"),
        lambda session: session.force_circuit(TYPE, Forced.OPEN, "a\0nn"),
        lambda session: session.force_circuit(TYPE, Forced.OPEN, "ann", "\ud800"),
    ],
)
def test_what_cannot_be_stored_is_refused(session: Session, lab: Lab, wrong: Callable[[Session], object]) -> None:
    with pytest.raises(StoreRefused):
        wrong(session)
    assert lab.count("CircuitOrders") == 0


def test_an_order_without_its_audit_row_is_none(session: Session, lab: Lab) -> None:
    session.force_circuit(TYPE, Forced.OPEN, "ann")
    before = lab.snapshot("CircuitOrders", "AuditLog")

    with lab.broken("AuditLog"), pytest.raises(StoreError):
        session.force_circuit(TYPE, Forced.CLOSED, "bob")

    assert lab.snapshot("CircuitOrders", "AuditLog") == before
    assert session.force_circuit(TYPE, Forced.CLOSED, "bob").forced is Forced.CLOSED


def test_operators_that_order_at_once_get_numbers_of_their_own(sessions: Sessions) -> None:
    """The very first orders: the ticket does not exist yet."""

    def order(session: Session, index: int) -> CircuitOrder:
        return session.force_circuit(f"t.{index}", Forced.OPEN, f"operator {index}")

    orders = together([partial(order, one, index) for index, one in enumerate(sessions.many(4))])

    told = sessions().read_circuit_orders()
    assert sorted(order.number for order in orders) == [1, 2, 3, 4]
    assert told.number == 4
    assert {order.type_key for order in told.orders} == {f"t.{n}" for n in range(4)}


# ── denied jobs ───────────────────────────────────────────────────────────────────────────────────────────────────────
def test_g13_a_denied_job_waits_uncharged_and_is_no_retry(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.claim_one()

    assert session.release_jobs(holder.worker, [Release(held.id, held.lease, 5_000, DAY)]) == [Answer.APPLIED]

    row = lab.row(held.id)
    assert (row["Status"], row["AttemptCount"], row["IsReady"]) == (0, 0, 0)
    assert session.list_attempts(held.id) == []
    assert session.list_buckets(None, DAY) == []
    assert [view.retried_total for view in session.list_queues()] == [0]


def test_g13_a_job_whose_circuit_stays_open_ends_with_its_age(session: Session, lab: Lab) -> None:
    session.register_worker(worker_info(""))
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.claim_one()
    lab.age(held.id, "AgeFromUtc", DAY - 4_000)

    assert session.release_jobs(holder.worker, [Release(held.id, held.lease, 5_000, DAY)]) == [Answer.EXPIRED]

    job = session.get_job(held.id)
    assert job is not None
    assert (job.pillar, job.status, job.failure_reason, job.attempt_count) == (
        Pillar.DLQ,
        JobStatus.FAILED,
        FailureReason.RETRY_LIFETIME_EXPIRED,
        0,
    )
