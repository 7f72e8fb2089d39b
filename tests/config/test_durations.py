"""Durations and sizes: what is read, what is refused, what is written reads back."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.config.durations import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5_400),
        ("500ms", 0.5),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1.5h", 5_400),
        ("1h 30m", 5_400),
        ("90", 90),
        ("0.25", 0.25),
        ("15 s", 15),
        ("1D2H", 93_600),
        (90, 90),
        (1.5, 1.5),
        (0, 0),
    ],
)
def test_a_duration_is_text_with_units_or_a_number_of_seconds(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1s",
        "1h1h",
        "30m1h",
        "1x",
        "h",
        "1h-30m",
        "nan",
        "inf",
        -1,
        True,
        None,
        [],
        float("nan"),
        float("inf"),
    ],
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the rule around it words the message
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**12))
def test_every_duration_in_milliseconds_reads_back_as_itself(milliseconds: int) -> None:
    assert round(parse_duration(format_duration(milliseconds / 1_000)) * 1_000) == milliseconds


@given(st.text(alphabet="0123456789hmsdw. -", max_size=12))
def test_any_text_is_a_duration_that_is_not_negative_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MB", 512 * 1024**2),
        ("1.5G", 3 * 1024**3 // 2),
        ("2GiB", 2 * 1024**3),
        ("4 kb", 4096),
        ("77", 77),
        (77, 77),
        ("0", 0),
    ],
)
def test_a_size_is_text_with_a_unit_or_a_number_of_bytes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1XB", "-1", -1, True, 1.5, None, "1 2"])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the rule around it words the message
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**60))
def test_every_size_reads_back_as_itself(size: int) -> None:
    assert parse_size(format_size(size)) == size
