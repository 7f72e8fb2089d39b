"""What travels to a procedure: no escapes in the document, every text back by its offsets or its mapping."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope
from chokaq.store.errors import StoreRefused
from chokaq.store.records import AttemptError, CrashPolicies, CrashPolicy, Failure, Held, NewJob, Release
from chokaq.store.sqlserver import documents

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


def job(**fields: object) -> NewJob:
    return NewJob(**{"id": ID, "queue": "mail", "type_key": "email.v1", "payload": '{"a":"\\u00e9"}', **fields})  # type: ignore[arg-type]


def back(text: str, carriers: str) -> str:
    """What TRANSLATE does in the procedure."""
    return text.translate(str.maketrans(carriers, documents.ESCAPED))


@given(st.lists(texts, max_size=5))
def test_any_text_travels_without_an_escape_and_comes_back(several: list[str]) -> None:
    mapped = documents.Mapping(several)
    for text in several:
        sent = mapped(text)
        assert sent is not None
        assert "\\" not in json.dumps(sent, ensure_ascii=False)
        assert back(sent, mapped.carriers) == text


def test_carriers_avoid_the_characters_a_text_uses() -> None:
    carriers = documents.carriers(["plain", "\ue000 and \ue005"])
    assert len(carriers) == len(documents.ESCAPED) == 33
    assert not set(carriers) & {"\ue000", "\ue005"}


def test_an_enqueue_sends_names_payload_and_headers_as_bytes() -> None:
    jobs = [job(id=f"{n:026d}", payload=f'"{n}\\n"', headers='{"h":"\\""}', queue='q"\\') for n in range(3)]
    carriers, document, data = documents.new_jobs(jobs)

    rows = json.loads(document)
    assert "\\" not in document
    assert carriers
    for row, sent in zip(rows, jobs, strict=True):
        cut = {name: data[row[name + "a"] - 1 : row[name + "a"] - 1 + row[name + "n"]].decode() for name in "qtph"}
        assert cut == {"q": sent.queue, "t": sent.type_key, "p": sent.payload, "h": sent.headers}
    assert data.count(b"email.v1") == 1, "a name that many jobs share travels once"


def test_jobs_are_sent_in_the_order_of_their_keys() -> None:
    jobs = [job(id=f"{n:026d}", idempotency_key=key) for n, key in enumerate(["b", "a", "c"])]
    _, document, _ = documents.new_jobs(jobs)
    assert [row["k"] for row in json.loads(document)] == ["a", "b", "c"]


def test_an_instant_travels_in_milliseconds_rounded_up() -> None:
    instant = datetime(2031, 7, 1, 12, 0, 0, 1, tzinfo=UTC)
    assert documents.milliseconds(instant) == documents.milliseconds(instant.replace(microsecond=1000))
    assert documents.milliseconds(datetime(1970, 1, 1, tzinfo=UTC) - timedelta(seconds=1)) == -1000
    with pytest.raises(StoreRefused, match="time zone"):
        documents.milliseconds(datetime(2031, 7, 1))  # noqa: DTZ001 - on purpose


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"queue": "ü"}, "queue"),
        ({"type_key": ""}, "type key"),
        ({"payload": '"é"'}, "payload"),
        ({"headers": "x" * 4001}, "headers"),
        ({"tags": "😀" * 501}, "tags"),
        ({"created_by": "x" * 101}, "created_by"),
        ({"idempotency_key": "я" * 256}, "idempotency key"),
        ({"delay_ms": 10**15}, "9999"),
        ({"key_scope": KeyScope.WINDOW, "key_window_ms": 10**15}, "9999"),
    ],
)
def test_what_a_column_cannot_hold_is_refused_with_its_field(fields: dict[str, object], says: str) -> None:
    with pytest.raises(StoreRefused, match=says):
        documents.validate([job(**fields)])


def test_more_jobs_than_a_call_carries_are_refused() -> None:
    with pytest.raises(StoreRefused, match="1,000"):
        documents.bounded([None] * 1001)


@given(texts, st.integers(1, 40))
def test_a_text_is_cut_by_utf_16_units_and_never_inside_a_character(text: str, units: int) -> None:
    cut = documents.cut(text, units)
    assert text.startswith(cut)
    assert len(cut.encode("utf-16-le")) <= 2 * units
    assert len(cut) == len(text) or len(text[: len(cut) + 1].encode("utf-16-le")) > 2 * units


@pytest.mark.parametrize("letter", ["x", "я", "😀"])
def test_a_long_trace_travels_in_four_pieces(letter: str) -> None:
    error = AttemptError("E", "m", letter * 20_000)
    _, document = documents.failures([Failure(ID, 1, JobStatus.FAILED, FailureReason.FATAL_ERROR, error)])
    [row] = json.loads(document)
    pieces = [row[f"x{piece}"] for piece in range(1, 5)]
    assert all(len(piece.encode("utf-16-le")) <= 8_000 for piece in pieces)
    assert error.trace is not None
    assert error.trace.startswith("".join(pieces))


def test_each_pair_of_id_and_lease_travels_once_and_impossible_ids_not_at_all() -> None:
    held = [Held(ID, 1), Held(ID, 1), Held(ID, 2), Held(ID + "X", 1), Held('"', 1)]
    assert json.loads(documents.leases(held)) == [{"i": ID, "l": 1}, {"i": ID, "l": 2}]
    assert json.loads(documents.ids([ID, ID, "é"])) == [{"i": ID}]


def test_a_release_without_delay_says_nothing_of_one() -> None:
    assert json.loads(documents.releases([Release(ID, 1), Release(ID, 2, 5, 7)])) == [
        {"i": ID, "l": 1},
        {"i": ID, "l": 2, "d": 5, "a": 7},
    ]


def test_policies_travel_with_at_least_one_backoff_step() -> None:
    given_policies = CrashPolicies(
        default=CrashPolicy(on_crash="retry", backoff_ms=(1, 2)),
        types={"A.v1": CrashPolicy(backoff_ms=(), max_age_ms=None)},
    )
    policies, steps = map(json.loads, documents.policies(given_policies))
    assert [(row["t"], row["c"], row["k"], row.get("a")) for row in policies] == [
        ("", 1, 2, 86_400_000),
        ("a.v1", 0, 1, None),
    ]
    assert [(row["t"], row["n"], row["d"]) for row in steps] == [("", 1, 1), ("", 2, 2), ("a.v1", 1, 0)]
