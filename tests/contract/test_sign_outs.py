"""Who signed out of The Deck is told with what changed, to every process that asks."""

import pytest

from chokaq.store.errors import StoreRefused
from chokaq.store.looking import EVER
from chokaq.store.protocol import Session
from tests.support.lab import Lab

HOUR = 3_600_000


def test_a_sign_out_is_told_with_how_long_the_session_would_go_on_and_only_to_who_asks(session: Session) -> None:
    session.sign_out("a-session_1", HOUR)

    assert session.read_changes().signed_out == {}
    told = session.read_changes([], EVER).signed_out
    assert list(told) == ["a-session_1"]
    assert HOUR - 60_000 < told["a-session_1"] <= HOUR


def test_who_knows_the_older_ones_is_told_the_newer_ones(session: Session, lab: Lab) -> None:
    session.sign_out("old", HOUR)
    lab.age_all("SignOuts", "EndedAtUtc", 120_000)
    session.sign_out("new", HOUR)

    assert set(session.read_changes([], 60).signed_out) == {"new"}
    assert set(session.read_changes([], 180).signed_out) == {"new", "old"}
    assert session.read_changes([], 0).signed_out.keys() <= {"new"}


def test_a_repeat_changes_nothing(session: Session, lab: Lab) -> None:
    session.sign_out("one", HOUR)
    before = lab.rows("SignOuts")
    session.sign_out("one", 2 * HOUR)
    assert lab.rows("SignOuts") == before


def test_a_session_that_would_be_over_is_told_no_more_and_purged(session: Session, lab: Lab) -> None:
    session.sign_out("gone", HOUR)
    session.sign_out("over", 0)
    session.sign_out("here", 400 * 86_400_000 + 1)
    lab.age_all("SignOuts", "UntilUtc", HOUR, "SessionId = 'gone'")

    told = session.read_changes([], EVER).signed_out

    assert set(told) == {"here"}
    assert told["here"] <= 400 * 86_400_000
    assert session.purge_leftovers() == 1
    assert [row["SessionId"] for row in lab.rows("SignOuts")] == ["here"]


def test_names_differ_by_the_case_of_their_letters(session: Session) -> None:
    for name in ("aB", "Ab"):
        session.sign_out(name, HOUR)
    assert set(session.read_changes([], EVER).signed_out) == {"aB", "Ab"}


@pytest.mark.parametrize("name", ["", "x" * 65, "ü", "a\nb"])
def test_what_names_no_session_is_refused(session: Session, lab: Lab, name: str) -> None:
    with pytest.raises(StoreRefused, match="1 to 64 printable ASCII characters"):
        session.sign_out(name, HOUR)
    assert lab.count("SignOuts") == 0
