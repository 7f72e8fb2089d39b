"""Payloads: ASCII out, typed and tolerant in, errors that name the place."""

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.jobs.codec import convert, decode, encode
from chokaq.lifecycle.errors import PayloadError

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


class Mail(msgspec.Struct):
    to: str
    copies: list[str] = []
    when: datetime | None = None
    weight: float = 1.0


@dataclass
class Note:
    text: str
    parts: list[float] = field(default_factory=list)


@given(st.dictionaries(texts, plain, max_size=5))
def test_a_dict_comes_back_as_it_went_in_and_travels_as_ascii(job: dict[str, Any]) -> None:
    payload = encode(job)
    assert payload.isascii()
    assert json.loads(payload) == job
    assert decode(dict, payload, "x.v1") == job


@given(to=texts, copies=st.lists(texts, max_size=3), weight=st.floats(allow_nan=False, allow_infinity=False))
def test_a_struct_comes_back_as_it_went_in(to: str, copies: list[str], weight: float) -> None:
    mail = Mail(to=to, copies=copies, when=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), weight=weight)
    payload = encode(mail)
    assert payload.isascii()
    assert decode(Mail, payload, "mail.v1") == mail


@given(text=texts, parts=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3))
def test_a_dataclass_comes_back_as_it_went_in(text: str, parts: list[float]) -> None:
    assert decode(Note, encode(Note(text, parts)), "note.v1") == Note(text, parts)


def test_characters_beyond_the_basic_plane_travel_as_surrogate_pairs() -> None:
    assert encode({"é": "😀\x00"}) == '{"\\u00e9":"\\ud83d\\ude00\\u0000"}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_json_does_not_know_are_refused_with_their_path(value: float) -> None:
    with pytest.raises(PayloadError, match=r"Note cannot be written as JSON: .*\$\.parts\[1\]"):
        encode(Note("x", [1.0, value]))


def test_none_is_not_taken_for_nan() -> None:
    assert encode({"a": None, "b": [None]}) == '{"a":null,"b":[null]}'


def test_half_a_surrogate_pair_is_refused_with_its_path() -> None:
    with pytest.raises(PayloadError, match=r"surrogate.*\$\.to"):
        encode(Mail(to="\ud83d"))


def test_an_object_json_cannot_hold_is_refused_with_its_path() -> None:
    with pytest.raises(PayloadError, match=r"object is unsupported \(at \$\.a\[0\]\)"):
        encode({"a": [object()]})


def test_a_dict_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(PayloadError, match="nested too deeply"):
        encode(loop)


def test_a_field_the_contract_does_not_know_is_ignored() -> None:
    assert decode(Mail, '{"to":"a","added":{"later":1}}', "mail.v1") == Mail(to="a")


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ('{"to":5}', r"payload of mail\.v1 does not fit Mail: .*\$\.to"),
        ('{"to":"a","copies":["b",7]}', r"\$\.copies\[1\]"),
        ("{}", "missing required field `to`"),
        ("[]", "Expected `object`"),
        ('{"to":', "truncated"),
        ('{"to":"a","weight":NaN}', "malformed"),
    ],
)
def test_a_payload_that_does_not_fit_says_where(payload: str, says: str) -> None:
    with pytest.raises(PayloadError, match=says):
        decode(Mail, payload, "mail.v1")


def test_what_a_contract_raises_while_it_is_built_is_a_payload_error() -> None:
    @dataclass
    class Strict:
        n: int

        def __post_init__(self) -> None:
            raise KeyError("no")

    with pytest.raises(PayloadError, match="does not fit Strict"):
        decode(Strict, '{"n":1}', "strict.v1")


def test_plain_data_becomes_a_contract() -> None:
    assert convert(Mail, {"to": "a"}, "mail.v1") == Mail(to="a")
    with pytest.raises(PayloadError, match=r"\$\.to"):
        convert(Mail, {"to": 1}, "mail.v1")
