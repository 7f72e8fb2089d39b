"""The log-scale lag histogram and the sums of one call."""

import sqlite3
from contextlib import closing

import pytest

from chokaq.lifecycle.states import FailureReason, Outcome
from chokaq.store.sqlite import schema
from chokaq.store.sqlite.counters import Tally


def written(*tallies: Tally) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.apply(connection)
        for tally in tallies:
            tally.write(connection, 3, 1_700_000_000_123)
        return connection.execute("SELECT * FROM MetricBuckets").fetchall()


@pytest.mark.parametrize(
    ("lag", "bucket"),
    [
        (-5, 0),
        (0, 0),
        (1, 0),
        (2, 1),
        (4, 1),
        (5, 2),
        (16, 2),
        (17, 3),
        (1024, 5),
        (1025, 6),
        (1048576, 10),
        (1048577, 11),
    ],
)
def test_a_lag_counts_in_the_first_bucket_that_holds_it(lag: int, bucket: int) -> None:
    tally = Tally()
    tally.successes("mail", [10], [lag])
    [row] = written(tally)
    assert row[9:] == tuple(int(index == bucket) for index in range(12))


def test_sums_add_up_over_calls_of_one_second() -> None:
    first, second = Tally(), Tally()
    first.successes("mail", [10], [0])
    first.successes("mail", [30], [0])
    second.successes("mail", [20], [0])
    [row] = written(first, second)
    assert row[:9] == (3, 1, 1_700_000_000_000, "mail", Outcome.SUCCEEDED, -1, 3, 60, 30)


def test_a_failure_that_never_started_has_no_lag() -> None:
    tally = Tally()
    tally.failure("mail", FailureReason.FATAL_ERROR, None)
    [row] = written(tally)
    assert row[4:] == (Outcome.FAILED, FailureReason.FATAL_ERROR, 1, 0, 0, *[0] * 12)
