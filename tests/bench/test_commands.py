"""Every bench runs end to end on SQLite and prints its figures; the sizes are tiny, the figures mean nothing."""

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from bench import cli, stage
from tests.bench.conftest import Bench

pytestmark = [pytest.mark.processes, pytest.mark.timeout(400)]


def test_throughput_completes_every_job_once_and_counts_calls_sets_and_the_ceiling(bench: Bench) -> None:
    found = bench("throughput", "--jobs", "150", "--children", "1", "--ceiling")
    assert found["completed_per_second"] > 0
    assert found["ceiling_per_second"] > 0
    assert found["share_of_ceiling"] == pytest.approx(
        found["completed_per_second"] / found["ceiling_per_second"], rel=0.01
    )
    assert (found["lost"], found["repeated"]) == (0, 0)
    assert found["cpu_us_per_job"] >= 0
    # At most 100 are fetched, and at most 50 are started at once: no fewer calls than that, and no call per job.
    assert 0.03 < found["round_trips_per_job"] < 1
    assert 1 <= found["batch"]["start_jobs"] <= 50
    assert 1 <= found["batch"]["archive_succeeded"] <= 150


def test_latency_measures_pickup_and_counts_three_calls_for_a_job_that_comes_alone(bench: Bench) -> None:
    found = bench("latency", "--jobs", "8", "--every", "0.05", "--rest", "0.2")
    pickup = found["pickup_ms"]
    assert 0 < pickup["p50"] <= pickup["p99"] <= pickup["max"]
    assert found["pickup_after_commit_ms"]["p50"] <= pickup["p50"]
    assert found["calls"]["start_jobs"] <= 8
    assert found["calls"]["archive_succeeded"] <= 8
    assert found["round_trips_per_job"] == found["calls_per_job"] > 1
    # The application rings the doorbell once: a job that comes alone is found by the fetch that it causes, and by no other.
    assert found["polls_per_job"] < 0.5


def test_flat_compares_a_small_and_a_large_database_for_every_kind_of_row(bench: Bench) -> None:
    found = bench("flat", "--rows", "50", "200", "--cycles", "2", "--batch", "5")
    assert set(found["kinds"]) == {"pending", "scheduled", "other queues", "archived", "dlq"}
    ratios = [ratio for kind in found["kinds"].values() for ratio in kind["ratio"].values()]
    assert found["worst_ratio"] == max(ratios)
    assert all(ratio > 0 for ratio in ratios)
    assert "not updated" in found["statistics"]


def test_idle_tells_cpu_calls_and_memory_of_a_child_without_jobs(bench: Bench) -> None:
    found = bench("idle", "--seconds", "1.5", "--settle", "0.2")
    assert 0 <= found["cpu_percent"] < 100
    assert 0 < found["calls_per_second"] < 30
    assert 1 < found["memory_mb"] < 200


def test_enqueue_is_measured_against_the_bare_insert(bench: Bench) -> None:
    found = bench("enqueue", "--singles", "5", "--thousands", "1")
    assert found["single_share"] == found["app_single_share"] > 0
    assert found["thousand_share"] == found["app_thousand_share"] > 0
    assert found["bare_thousand"] > found["bare_single"] > 0


def test_claimers_complete_all_jobs_between_them(bench: Bench) -> None:
    found = bench("claimers", "--bare", "--claimers", "1", "2", "--jobs", "100", "--batch", "10")
    assert set(found["completed_per_second"]) == {"1", "2"}
    assert found["claimers_most"] == 2
    assert 0 < found["ratio"] <= 1


def test_crash_loses_nothing_and_says_what_became_of_the_running_jobs(bench: Bench) -> None:
    found = bench("crash", "--jobs", "200", "--sleep", "0.2")
    assert found["lost"] == 0
    assert found["repeated"] == 0
    assert 0 < found["dead_lettered"] <= 50 + found["done_unsettled"]
    assert found["seconds"] > 0


def test_soak_keeps_its_rate_and_tells_slope_drift_and_errors(bench: Bench) -> None:
    found = bench(
        *("soak", "--minutes", "0.1", "--rate", "20", "--sample", "0.5", "--children", "1", "--deploy-every", "0.04")
    )
    assert found["deploys"] == 1
    assert (found["lost"], found["errors"], found["dead_lettered"]) == (0, 0, 0)
    assert "bench #0" in found["memory_slope_mb_per_hour"]
    assert found["latency_drift"] > 0
    assert found["completed_per_second"] == pytest.approx(20, rel=0.5)


def test_compare_drives_a_system_by_its_own_program_and_writes_table_and_chart(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "docs"
    found = bench(
        "compare", "--only", "chokaq-sqlite", "--setups", "1p", "--jobs", "100", "--latency-jobs", "3", "--out", str(out)
    )  # fmt: skip
    assert found["missing"] == {}
    assert found["throughput"]["chokaq-sqlite 1p"]["completed_per_second"] > 0
    assert found["throughput"]["chokaq-sqlite 1p"]["unfinished"] == 0
    assert found["latency"]["chokaq-sqlite 1p"]["p50"] > 0
    assert "| chokaq (SQLite) |" in (out / "compare.md").read_text()
    Xml.parse(out / "compare.svg")


def test_sql_server_without_a_url_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stage, "HOME", tmp_path)
    monkeypatch.delenv("CHOKAQ_TEST_SQLSERVER", raising=False)
    assert cli.main(["flat", "--store", "sqlserver"]) == 1
    assert "--database mssql://" in capsys.readouterr().err
