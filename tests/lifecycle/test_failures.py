"""Classification of a handler's exceptions, and the texts they leave behind."""

import asyncio
import io
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.lifecycle.errors import FatalError, PayloadError, Throttled
from chokaq.lifecycle.failures import MESSAGE_LIMIT, TRACE_LIMIT, TYPE_LIMIT, Kind, classify, cut, describe


class InvalidOrderError(ValueError):
    """An application's own subclass of ValueError: not a programming error by itself."""


class BrokenTextError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def chained(outer: BaseException, cause: BaseException) -> BaseException:
    outer.__cause__ = cause
    return outer


def in_context(outer: BaseException, context: BaseException) -> BaseException:
    outer.__context__ = context
    return outer


@pytest.mark.parametrize(
    "error",
    [
        FatalError("no"),
        PayloadError("no"),
        TypeError(),
        AttributeError(),
        NameError(),
        UnboundLocalError(),
        NotImplementedError(),
        ValueError("bad"),
        chained(RuntimeError(), FatalError()),
        chained(RuntimeError(), chained(KeyError(), TypeError())),
        in_context(RuntimeError(), AttributeError()),
        ExceptionGroup("all", [TypeError(), ExceptionGroup("inner", [FatalError(), ValueError()])]),
        chained(ValueError(), OSError()),
    ],
)
def test_another_attempt_would_reach_the_same_answer(error: BaseException) -> None:
    assert classify(error).kind is Kind.FATAL


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(),
        KeyError(),
        OSError(),
        TimeoutError(),
        ConnectionResetError(),
        io.UnsupportedOperation(),
        InvalidOrderError(),
        json.JSONDecodeError("x", "y", 0),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"),
        asyncio.CancelledError(),
        SystemExit(1),
        MemoryError(),
        chained(OSError(), TypeError()),
        chained(RuntimeError(), chained(TimeoutError(), ValueError())),
        ExceptionGroup("mixed", [TypeError(), OSError()]),
        ExceptionGroup("mixed", [TypeError(), RuntimeError()]),
    ],
)
def test_everything_else_may_pass(error: BaseException) -> None:
    assert classify(error).kind is Kind.TRANSIENT


def test_a_suppressed_context_is_not_looked_at() -> None:
    error = in_context(RuntimeError(), TypeError())
    error.__suppress_context__ = True
    assert classify(error).kind is Kind.TRANSIENT


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert classify(one).kind is Kind.TRANSIENT


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (30, 30.0),
        (timedelta(minutes=2), 120.0),
        (None, None),
        (-5, 0.0),
        (float("nan"), None),
        (float("inf"), float("inf")),
    ],
)
def test_a_throttling_dependency_names_its_delay(asked: float | timedelta | None, kept: float | None) -> None:
    verdict = classify(chained(RuntimeError(), Throttled(asked)))
    assert (verdict.kind, verdict.retry_after) == (Kind.THROTTLED, kept)


def test_a_group_waits_for_its_most_patient_leaf() -> None:
    verdict = classify(ExceptionGroup("x", [TypeError(), Throttled(3), Throttled(9), Throttled()]))
    assert (verdict.kind, verdict.retry_after) == (Kind.THROTTLED, 9.0)


def test_an_error_is_described_by_type_message_and_trace() -> None:
    try:
        raise FatalError("the recipient is unknown")
    except FatalError as error:
        text = describe(error)
    assert text.type == "chokaq.lifecycle.errors.FatalError"
    assert text.message == "the recipient is unknown"
    assert text.trace is not None
    assert "test_failures.py" in text.trace


def test_builtin_errors_go_by_their_short_name() -> None:
    assert describe(ValueError("x")).type == "ValueError"


def test_an_error_without_text_is_described_all_the_same() -> None:
    assert describe(BrokenTextError()).message == "(its text could not be made)"


def test_a_trace_keeps_its_beginning_and_its_end() -> None:
    text = describe(RuntimeError("a" * 50_000 + "the end"))
    assert text.trace is not None
    assert text.trace.startswith("RuntimeError: aaa")
    assert text.trace.endswith("the end\n")
    assert len(text.trace) == TRACE_LIMIT


@given(st.text(alphabet=st.characters(codec=None, categories=None), max_size=200), st.integers(4, 60))
def test_any_text_can_be_stored_after_the_cut(text: str, limit: int) -> None:
    for kept in (cut(text, limit), cut(text, limit + 9, limit // 3)):
        assert len(kept.encode("utf-16-le")) // 2 <= limit + 9
        kept.encode("utf-8")
        assert "\0" not in kept


@given(st.text(max_size=30))
def test_text_within_the_limit_stays_as_it_is(text: str) -> None:
    assert cut(text, 60) == text.replace("\0", "\u2400")


def test_huge_errors_fit_the_columns() -> None:
    """C45."""
    kind = type("E" * 400, (Exception,), {})
    text = describe(kind("\U0001f600" * 5_000))
    assert len(text.type.encode("utf-16-le")) // 2 <= TYPE_LIMIT
    assert len(text.message.encode("utf-16-le")) // 2 <= MESSAGE_LIMIT
