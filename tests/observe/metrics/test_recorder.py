"""Counting: the right cell, the right bucket, within the budget, and never at the cost of the work."""

import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chokaq.observe.metrics.catalogue import BY_NAME
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.values import ValueFile, read_values

COMPLETED = "chokaq_jobs_completed_total"
PICKUP = "chokaq_jobs_pickup_seconds"


def recorder(folder: Path, **settings: int) -> Recorder:
    return Recorder(ValueFile(folder / "a.db"), MetricsSettings(**settings))  # type: ignore[arg-type]


def values(folder: Path) -> dict[tuple[str, ...], tuple[float, ...]]:
    return dict(read_values(folder / "a.db"))


def test_a_cell_is_made_once_and_counts(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    made.counter(COMPLETED, "q", "t").add()
    made.counter(COMPLETED, "q", "t").add(2)
    assert made.counter(COMPLETED, "q", "t") is made.counter(COMPLETED, "q", "t")
    assert values(tmp_path) == {(COMPLETED, "q", "t"): (3.0,)}


def test_a_value_falls_into_the_bucket_whose_bound_it_does_not_exceed(tmp_path: Path) -> None:
    histogram = recorder(tmp_path).histogram(PICKUP, "q")
    bounds = BY_NAME[PICKUP].bounds
    for value in (0.0, bounds[0], bounds[0] * 1.01, bounds[-1], bounds[-1] + 1):
        histogram.observe(value)
    *counts, total = values(tmp_path)[PICKUP, "q"]
    assert (counts[0], counts[1], counts[-2], counts[-1]) == (2, 1, 1, 1)
    assert total == pytest.approx(bounds[0] * 2.01 + bounds[-1] * 2 + 1)


def test_a_gauge_is_unknown_until_it_is_set_and_after_it_was_cleared(tmp_path: Path) -> None:
    gauge = recorder(tmp_path).gauge("chokaq_ready")
    key = ("chokaq_ready",)
    assert values(tmp_path)[key][0] != values(tmp_path)[key][0]
    gauge.set(1)
    assert values(tmp_path)[key] == (1.0,)
    gauge.clear()
    assert values(tmp_path)[key][0] != values(tmp_path)[key][0]


def test_values_beyond_the_budget_are_counted_together_and_kept_nowhere(tmp_path: Path) -> None:
    made = recorder(tmp_path, max_types=1)
    for number in range(50):
        made.counter(COMPLETED, "q", f"t{number}").add()
    assert values(tmp_path) == {
        (COMPLETED, "q", "t0"): (1.0,),
        (COMPLETED, "q", "other"): (49.0,),
        ("chokaq_metrics_overflows_total", "type"): (49.0,),
    }
    assert set(made._resolved) == {(COMPLETED, "q", "t0"), ("chokaq_metrics_overflows_total", "type")}


def test_the_wrong_kind_and_the_wrong_number_of_labels_are_defects(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    with pytest.raises(TypeError, match="chokaq_ready is a gauge"):
        made.counter("chokaq_ready")
    with pytest.raises(ValueError, match="shorter"):
        made.counter(COMPLETED, "q")
    with pytest.raises(KeyError):
        made.counter("chokaq_nothing")


def test_threads_that_count_by_name_lose_nothing(tmp_path: Path) -> None:
    made = recorder(tmp_path)

    def work() -> None:
        for number in range(2_000):
            made.add("chokaq_sql_errors_total", str(number % 3))
            made.observe(PICKUP, "q", value=1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = values(tmp_path)
    assert sum(found["chokaq_sql_errors_total", number][0] for number in "012") == 8_000
    assert found[PICKUP, "q"][-1] == 8_000


def test_a_full_disk_costs_figures_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recorder(tmp_path)

    def full(_file: ValueFile, _key: object, _count: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ValueFile, "add", full)
    with capture_logs() as logs:
        for _ in range(3):
            made.counter(COMPLETED, "q", "t").add()
            made.histogram(PICKUP, "q").observe(0.1)
    assert [log["event"] for log in logs] == ["metrics_file_full"]
    assert values(tmp_path) == {}
