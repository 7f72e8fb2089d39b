"""A cursor goes on where its page ended, and only with the filter it came with (C44)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.operations import OperationError
from chokaq.operations.cursors import cursor_of, position_of
from chokaq.store.records import JobFilter


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40))
def test_a_cursor_gives_back_its_position(position: str) -> None:
    cursor = cursor_of("jobs", JobFilter(queue="q"), position)
    assert position_of("jobs", JobFilter(queue="q"), f" {cursor}\n") == position
    assert not cursor.startswith("-"), "a command line would take it for an option"


@pytest.mark.parametrize("change", [{"queue": "other"}, {"queue": None}, {"tag": "x"}, {"status": 0}])
def test_a_cursor_of_another_filter_is_refused(change: dict[str, object]) -> None:
    where = JobFilter(queue="q")
    cursor = cursor_of("jobs", where, "x")
    with pytest.raises(OperationError, match="belongs to another list or another filter"):
        position_of("jobs", msgspec.structs.replace(where, **change), cursor)


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(OperationError, match="belongs to another list"):
        position_of("audit", None, cursor_of("jobs", None, "5"))


@pytest.mark.parametrize("text", ["", "x", "01HZZZZZZZZZZZZZZZZZZZZZZZ", "a b", "é", "AQ", "AQAAAAAAAAAA", "A" * 5])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(OperationError, match="is no cursor"):
        position_of("jobs", None, text)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader_of_cursors(text: str) -> None:
    with pytest.raises(OperationError):
        position_of("jobs", None, text)
