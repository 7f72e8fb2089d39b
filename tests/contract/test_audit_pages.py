"""ListAudit by who and by what, each by its index and in pages; of several filters the first one counts."""

from chokaq.lifecycle.circuit import Forced
from chokaq.store.protocol import Session
from chokaq.store.records import AuditEntry, QueueChange
from tests.support.jobs import QUEUE, TYPE


def busy(session: Session) -> None:
    """Two operators, two kinds of action."""
    for number in range(6):
        actor = "Анна" if number % 3 == 0 else "Bert"
        session.set_queue(f"q{number % 2}", QueueChange(max_workers=number + 1), actor, str(number))
        session.force_circuit(TYPE, Forced.OPEN, actor, str(number))


def pages(session: Session, limit: int, **where: str) -> list[AuditEntry]:
    """All of them, page by page."""
    found: list[AuditEntry] = []
    while True:
        page = session.list_audit(limit=limit, after=found[-1].id if found else None, **where)  # type: ignore[arg-type]
        found += page
        if len(page) < limit:
            return found


def test_pages_of_one_actor_hold_all_of_theirs_newest_first(session: Session) -> None:
    busy(session)
    found = pages(session, 3, actor="Анна")
    assert [(entry.reason, entry.action) for entry in found] == [
        ("3", "force_circuit"), ("3", "set_queue"), ("0", "force_circuit"), ("0", "set_queue"),
    ]  # fmt: skip
    assert {entry.actor for entry in found} == {"Анна"}


def test_pages_of_one_action_hold_every_one_newest_first(session: Session) -> None:
    busy(session)
    found = pages(session, 4, action="set_queue")
    assert [entry.reason for entry in found] == ["5", "4", "3", "2", "1", "0"]


def test_ascii_letters_of_either_case_fit(session: Session) -> None:
    busy(session)
    assert [entry.reason for entry in session.list_audit(actor="BERT", limit=2)] == ["5", "5"]
    assert len(session.list_audit(action="Set_Queue")) == 6


def test_what_fits_nothing_finds_nothing_and_the_whole_word_counts(session: Session) -> None:
    busy(session)
    for where in ({"actor": "Ber"}, {"actor": "%"}, {"action": "set"}, {"action": "set%queue"}, {"actor": "b" * 100}):
        assert session.list_audit(**where) == []  # type: ignore[arg-type]


def test_an_empty_filter_is_none_and_of_several_the_first_one_counts(session: Session) -> None:
    busy(session)
    assert len(session.list_audit(actor="", action="")) == 12
    assert {entry.target for entry in session.list_audit("q1", actor="Анна", action="force_circuit")} == {"q1"}
    assert {entry.actor for entry in session.list_audit(actor="Bert", action="set_queue")} == {"Bert"}
    assert len(session.list_audit(actor="Bert", action="set_queue")) == 8
    assert session.list_audit(QUEUE, actor="Bert") == []
