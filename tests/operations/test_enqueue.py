"""A job by hand: raw JSON, checked against the envelope, kept byte for byte."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chokaq.lifecycle.states import KeyScope
from chokaq.operations import OperationError
from chokaq.operations.enqueue import enqueue_job, raw_job
from chokaq.store.protocol import Session, Store


def job(payload: str = "{}", **options: Any) -> Any:
    """A raw job with what a test does not care about filled in."""
    return raw_job("email.send.v1", payload, **{"queue": "emails", "max_payload_bytes": 1_000, **options})


def test_the_payload_is_stored_as_given_with_non_ascii_escaped(store: Store, session: Session) -> None:
    text = '{"b": 1.50, "a": "ü\\u0000\U0001f600", "big": 123456789012345678901234567890}'
    answer = enqueue_job(store, session, job(text, headers={"trace": "é"}, tags="x", created_by="anna@host"))
    found = session.get_job(answer.id)
    assert found is not None
    assert found.payload == text.replace("ü", "\\u00fc").replace("\U0001f600", "\\ud83d\\ude00")
    assert (found.created_by, found.tags, found.headers) == ("anna@host", "x", '{"trace":"\\u00e9"}')


def test_a_key_answers_with_the_job_that_holds_it(store: Store, session: Session) -> None:
    first = enqueue_job(store, session, job(key="k"))
    second = enqueue_job(store, session, job('{"n": 1}', key="k"))
    assert (second.id, second.created, second.payload_differs) == (first.id, False, True)


def test_scopes_and_delays_are_those_of_the_envelope() -> None:
    assert job(key=" k ", scope="retained").key_scope == KeyScope.RETAINED
    window = job(key="k", scope=timedelta(hours=1))
    assert (window.key_scope, window.key_window_ms, window.idempotency_key) == (KeyScope.WINDOW, 3_600_000, "k")
    assert job(delay=1.5).delay_ms == 1_500
    assert job(at=datetime(2026, 1, 1, tzinfo=UTC)).due_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("payload", "options", "message"),
    [
        ("{", {}, "the payload is not JSON"),
        ("", {}, "the payload is not JSON"),
        ("NaN", {}, "the payload is not JSON"),
        ('"' + "x" * 1_000 + '"', {}, "at most 1,000 are allowed"),
        ("{}", {"queue": "ü"}, "queue"),
        ("{}", {"priority": -1}, "priority"),
        ("{}", {"delay": -1.0}, "delay"),
        ("{}", {"delay": 1.0, "at": datetime.now(UTC)}, "either a delay or an instant"),
        ("{}", {"scope": "retained"}, "give a key as well"),
        ("{}", {"key": "k", "scope": "ever"}, "scope must be"),
        ("{}", {"key": " "}, "key is blank"),
        ("{}", {"tags": "x" * 1_001}, "tags has 1001 characters"),
        ("{}", {"headers": {"x": "y" * 4_000}}, "headers take"),
    ],
)
def test_what_the_envelope_does_not_hold_is_refused(payload: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        job(payload, **options)
