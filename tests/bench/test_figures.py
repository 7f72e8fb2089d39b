"""The arithmetic behind every figure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import Spread, percentile, rate_after, rounded, shown, slope, spread
from bench.output import table, tidy

values = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50)


def test_a_spread_is_median_lowest_highest_and_number_of_runs() -> None:
    assert spread([5.0, 1.0, 9.0, 2.0]) == Spread(3.5, 1.0, 9.0, 4)


def test_nothing_measured_is_an_error_and_not_a_zero() -> None:
    for figure in (lambda: spread([]), lambda: percentile([], 0.5)):
        with pytest.raises(ValueError, match="no value"):
            figure()


def test_a_percentile_is_the_nearest_rank() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert [percentile(hundred, share) for share in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_outside_the_unit_interval_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        percentile([1.0], share)


@given(values, st.floats(0.01, 1.0))
def test_at_least_the_share_of_all_values_is_no_larger_than_the_percentile(found: list[float], share: float) -> None:
    mark = percentile(found, share)
    assert mark in found
    assert sum(value <= mark for value in found) >= share * len(found)


def test_a_rate_leaves_out_the_first_tenth_and_the_time_before_it() -> None:
    # Ten jobs: the first took nine seconds to come, the others one second each.
    timeline = [(9.0, 1), *((10.0 + n, 1) for n in range(9))]
    assert rate_after(timeline) == pytest.approx(9 / 9)
    assert rate_after([(0.0, 100), (1.0, 100), (2.0, 100)]) == pytest.approx(200 / 2)


@pytest.mark.parametrize("timeline", [[], [(1.0, 5)]])
def test_a_rate_of_a_single_instant_is_zero(timeline: list[tuple[float, int]]) -> None:
    assert rate_after(timeline) == 0.0


def test_a_slope_is_the_rise_per_unit() -> None:
    assert slope([[(0.0, 10.0), (1.0, 12.0), (2.0, 14.0)]]) == pytest.approx(2.0)
    assert slope([[(1.0, 10.0), (1.0, 99.0)]]) == 0.0


def test_lines_at_different_heights_have_one_slope() -> None:
    first, second = [(0.0, 10.0), (1.0, 12.0)], [(5.0, 1.0), (6.0, 3.0), (7.0, 5.0)]
    assert slope([first, second, []]) == pytest.approx(2.0)


def test_figures_are_shown_with_three_digits_and_kept_with_four() -> None:
    assert [shown(v) for v in (0.0, 0.012345, 1.2345, 12.345, 12345.6)] == ["0", "0.0123", "1.23", "12.3", "12,346"]
    assert [rounded(v) for v in (0.0, 0.0123456, 12345.6)] == [0.0, 0.01235, 12350.0]
    assert tidy({"a": [1.23456, "x", 7], "b": {"c": 9876.5}}) == {"a": [1.235, "x", 7], "b": {"c": 9876.0}}


def test_a_table_is_markdown_with_aligned_columns() -> None:
    assert table(("name", "n"), [("a", 1), ("long name", 22)]).splitlines() == [
        "| name      | n  |",
        "|-----------|----|",
        "| a         | 1  |",
        "| long name | 22 |",
    ]
