"""What pages are built of: nodes, figures in words, the filter that fields mean, an audit log as a file."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.deck.pages import words
from chokaq.deck.pages.audit import as_csv, difference
from chokaq.deck.pages.filters import changed
from chokaq.deck.pages.nodes import el, when
from chokaq.deck.shown import AuditLine, Search
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar


def test_an_element_takes_classes_children_and_attributes_and_leaves_out_what_is_none() -> None:
    node = el(
        "td.num", "12", None, [el("b", "x"), None], 1234, class_="wide", aria_label="n", title=None, disabled=False
    )
    assert node == ["td", {"class": "num wide", "aria-label": "n"}, ["12", ["b", {}, ["x"]], "1,234"]]


def test_an_instant_travels_as_milliseconds_and_a_missing_one_as_a_dash() -> None:
    assert when(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == ["when", {"ms": 1000, "mode": "ago"}, []]
    assert when(None) == ["span", {"class": "faint"}, ["\N{EN DASH}"]]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (3_400, "3.4 s"),
        (42_000, "42 s"),
        (125_000, "2 min 5 s"),
        (11_400_000, "3 h 10 min"),
        (86_400_000, "1 d"),
    ],
)
def test_a_duration_in_words(ms: float, text: str) -> None:
    assert words.duration(ms) == text


@given(st.floats(min_value=0, max_value=1e12))
def test_every_duration_and_rate_is_said_shortly(value: float) -> None:
    assert len(words.duration(value)) <= 14
    assert len(words.rate(value)) <= 20


def test_figures_in_words() -> None:
    assert (words.short(12_345), words.short(1_240_000), words.short(3e9)) == ("12,345", "1.24 M", "3.00 G")
    assert (words.percent(None), words.percent(0.021), words.percent(1)) == ("\N{EN DASH}", "2.1 %", "100 %")
    assert (words.jobs(1), words.jobs(1_200), words.size(312), words.size(4_100)) == (
        "1 job",
        "1,200 jobs",
        "312 B",
        "4.1 KB",
    )
    assert words.cut("one\n two", 5) == "one …"


def test_fields_change_the_filter_and_another_pillar_forgets_what_it_does_not_know() -> None:
    where = changed(
        Search(pillar=Pillar.DLQ), {"text": " mail ", "reason": "FatalError", "status": "failed", "stopped_from": 1_000}
    )
    assert where == Search(
        pillar=Pillar.DLQ,
        text="mail",
        reason=FailureReason.FATAL_ERROR,
        status=JobStatus.FAILED,
        stopped_from=datetime.fromtimestamp(1, UTC),
    )
    assert changed(where, {"pillar": "hot"}) == Search(pillar=Pillar.HOT, text="mail")
    assert changed(where, {"text": "", "reason": "", "status": "", "stopped_from": None}) == Search(pillar=Pillar.DLQ)


def test_what_a_spreadsheet_would_run_is_written_as_text() -> None:
    line = AuditLine(
        id=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        actor="=cmd()",
        action="drop",
        target="x",
        reason=None,
        before=None,
        after="+1",
    )
    assert as_csv([line]).splitlines()[1] == "1,2026-01-01T00:00:00+00:00,'=cmd(),drop,x,,,'+1"


def test_what_changed_is_said_in_short() -> None:
    assert difference('{"paused":false,"n":1}', '{"paused":true,"n":1}') == "paused: false → true"
    assert difference(None, '{"status":"Pending"}') == "status: none → Pending"
    assert difference("not JSON", "at all") == "at all"
    assert difference(None, None) == ""


def test_a_sentence_marks_what_is_to_be_typed() -> None:
    assert words.marked("look: `chokaq status` tells") == ["look: ", ["code", {}, ["chokaq status"]], " tells"]
    assert (words.error_name("shop.mail.Refused"), words.error_name("ValueError"), words.error_name(None)) == (
        "Refused",
        "ValueError",
        None,
    )
