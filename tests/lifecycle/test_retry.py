"""Backoff: exponential, jittered, never above its ceiling, never overflowing."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.lifecycle.retry import backoff, exhausted, throttle

amount = st.floats(0, 1e9, allow_nan=False)


@pytest.mark.parametrize(
    ("attempts", "delay"), [(1, 3.0), (2, 6.0), (3, 12.0), (4, 24.0), (11, 3_072.0), (12, 3_600.0)]
)
def test_the_default_policy_doubles_from_three_seconds_to_an_hour(attempts: int, delay: float) -> None:
    assert backoff(attempts, base=3, multiplier=2, maximum=3_600) == delay


def test_jitter_comes_on_top_but_stays_inside_the_ceiling() -> None:
    assert backoff(1, base=3, multiplier=2, maximum=3_600, jitter=1, chance=0.5) == 3.5
    assert backoff(99, base=3, multiplier=2, maximum=3_600, jitter=1, chance=0.5) == 3_600


settings = st.fixed_dictionaries(
    {
        "base": amount,
        "multiplier": st.floats(1, 1e6),
        "maximum": amount,
        "jitter": amount,
        "chance": st.floats(0, 0.999),
    }
)


@given(st.integers(-5, 10**9), settings)
def test_a_delay_is_never_negative_and_never_above_its_ceiling(attempts: int, settings: dict[str, float]) -> None:
    assert 0 <= backoff(attempts, **settings) <= settings["maximum"]


@given(st.integers(1, 5_000), st.floats(0.001, 1e6), st.floats(1, 1e3), st.floats(0, 1e9))
def test_later_attempts_never_wait_less(attempts: int, base: float, multiplier: float, maximum: float) -> None:
    this = backoff(attempts, base=base, multiplier=multiplier, maximum=maximum)
    assert this <= backoff(attempts + 1, base=base, multiplier=multiplier, maximum=maximum)


@given(amount, amount)
def test_a_dependency_gets_exactly_the_patience_it_asked_for(asked: float, maximum: float) -> None:
    assert throttle(asked, maximum=maximum) == min(asked, maximum)


def test_the_last_attempt_is_the_one_that_reaches_the_limit() -> None:
    assert [exhausted(n, 3) for n in (1, 2, 3, 4)] == [False, False, True, True]


@given(st.integers(1, 40), st.integers(1, 600), st.sampled_from([1, 2, 3, 10]), st.integers(1, 86_400))
def test_without_jitter_the_delay_is_base_times_multiplier_to_the_attempt_capped(
    attempts: int, base: int, multiplier: int, maximum: int
) -> None:
    """Design §8: `min(base·multiplier^(n-1), max)`, in exact arithmetic."""
    exact = min(Fraction(base) * Fraction(multiplier) ** (attempts - 1), Fraction(maximum))
    assert backoff(attempts, base=base, multiplier=multiplier, maximum=maximum) == pytest.approx(
        float(exact), rel=1e-12
    )


@given(st.integers(1, 100), settings, st.floats(0, 0.999), st.floats(0, 0.999))
def test_jitter_only_adds_at_most_its_width_and_more_chance_never_means_less(
    attempts: int, settings: dict[str, float], less: float, more: float
) -> None:
    less, more = sorted((less, more))
    bare = backoff(attempts, **{**settings, "jitter": 0.0})
    small, large = (backoff(attempts, **{**settings, "chance": chance}) for chance in (less, more))
    assert bare <= small <= large
    assert large - bare <= settings["jitter"]


@given(st.integers(1, 100), settings)
def test_jitter_inside_a_ceiling_that_is_reached_changes_nothing(attempts: int, settings: dict[str, float]) -> None:
    if backoff(attempts, **{**settings, "jitter": 0.0}) == settings["maximum"]:
        assert backoff(attempts, **settings) == settings["maximum"]


@given(st.integers(-3, 0), settings)
def test_a_job_that_never_started_waits_as_after_its_first_attempt(attempts: int, settings: dict[str, float]) -> None:
    assert backoff(attempts, **settings) == backoff(1, **settings)


@given(st.one_of(st.floats(-1e12, 1e12), st.just(float("inf"))), amount)
def test_throttling_is_never_negative_never_above_its_cap_and_else_exact(asked: float, maximum: float) -> None:
    kept = throttle(asked, maximum=maximum)
    assert 0 <= kept <= maximum
    assert kept == asked or asked < 0 or asked > maximum


@given(st.integers(0, 50), st.integers(1, 50))
def test_there_is_always_a_first_attempt_and_never_one_too_many(attempts: int, limit: int) -> None:
    assert not exhausted(0, limit)
    assert exhausted(attempts, limit) == (attempts >= limit)
