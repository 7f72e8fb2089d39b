"""What the benches are made of: records, call counts, the paths, the chart, the comparison of instruction counts, the model."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from bench import calls, instructions, record
from bench.chart import Group, bars
from bench.figures import spread
from bench.fleet import Choice, Cost, Fleet, Measured, simulate
from bench.paths import PATHS
from bench.processes import exact_cpu, look, private_mb, server_at, tree
from bench.simulate import main as simulate_main
from bench.workers import ROOT

MEASURED = Measured(
    name="a store",
    poll=Cost(0.0002, 0.0),
    fetch=Cost(0.001, 0.00002),
    start=Cost(0.001, 0.00001),
    archive=Cost(0.001, 0.00003),
)


def test_a_log_of_records_tells_numbers_phases_and_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = record.Log(tmp_path / "records")
    monkeypatch.setenv(record.LOG, str(log.path))
    monkeypatch.setattr(record, "_descriptor", -1)
    record.started(7)
    record.ended(7)
    record.started(8)
    assert [(mark.number, mark.is_end) for mark in log.marks()] == [(7, False), (7, True), (8, False)]
    assert [mark.number for mark in log.marks(2)] == [8]
    assert log.marks()[0].at <= log.marks()[1].at
    assert log.wait(3, 0.0)
    assert not log.wait(4, 0.0)


def test_a_payload_is_about_120_bytes() -> None:
    from chokaq.jobs.codec import encode

    assert 110 <= len(encode(record.payload(12_345))) <= 130


def test_calls_are_counted_by_operation_with_the_jobs_they_carry(tmp_path: Path) -> None:
    program = (
        "import sys; from bench.calls import count_here; count_here(sys.argv[1])\n"
        "from bench.paths import sqlite; sqlite(250)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, cwd=ROOT)
    counts = calls.read(tmp_path)
    assert counts["fetch_jobs"] == calls.Count(calls=3, jobs=250, empty=0)
    assert counts["archive_succeeded"] == calls.Count(calls=3, jobs=250, empty=0)
    assert counts["register_worker"].calls == 1
    assert counts["other"].calls == 3
    assert calls.total(counts) == 13
    assert calls.batch(counts, "start_jobs") == pytest.approx(250 / 3)
    assert calls.total(calls.since(counts, counts)) == 0


@pytest.mark.parametrize("name", PATHS)
def test_every_path_runs_its_jobs_to_the_end(name: str) -> None:
    PATHS[name](150)


def test_a_process_is_found_with_its_children_its_port_and_its_memory() -> None:
    program = (
        "import socket, subprocess, sys; s = socket.create_server(('127.0.0.1', 0))\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(s.getsockname()[1], child.pid, flush=True); input(); child.communicate()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    port, child = map(int, process.stdout.readline().split())
    assert {found.pid for found in tree({process.pid})} >= {process.pid, child}
    assert server_at(port) == process.pid
    assert private_mb(process.pid) > 0
    assert exact_cpu(process.pid) > 0
    process.communicate(b"\n")
    assert look(process.pid) is None


def test_growth_is_told_per_path_and_only_where_a_baseline_is() -> None:
    assert instructions.compare({"worker": 110.0, "new": 5.0}, {"worker": 100.0, "gone": 1.0}) == pytest.approx(
        {"worker": 0.1}
    )


def test_a_path_that_has_grown_ends_the_comparison_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"worker": 1_000.0}
    monkeypatch.setattr(instructions, "count", lambda path, _few, _many: counted[path])
    arguments = ["--paths", "worker", "--baseline", str(tmp_path / "baseline.json")]
    assert instructions.main([*arguments, "--save"]) == 0
    counted["worker"] = 1_020.0
    assert instructions.main(arguments) == 0
    counted["worker"] = 1_050.0
    assert instructions.main(arguments) == 1


def test_a_chart_is_well_formed_and_names_every_system() -> None:
    groups = [
        Group("ours <1>", [spread([10.0, 12.0]), None], ours=True),
        Group("theirs", [spread([4.0]), spread([5.0])]),
    ]
    drawn = Xml.fromstring(bars("jobs & seconds", ["1 process", "2 processes"], groups))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"ours <1>", "theirs", "jobs & seconds", "1 process", "11.0", "4.00", "5.00"} <= set(texts)


def test_a_simulated_fleet_completes_what_arrives_and_no_job_twice() -> None:
    fleet = Fleet(children=5, rate=50.0, seconds=20.0, handler=0.01)
    found = simulate(MEASURED, Choice(), fleet)
    assert found.completed == pytest.approx(1_000, rel=0.15)
    assert found.backlog < 50
    assert 0 < found.pickup_p50 <= found.pickup_p99


def test_more_idle_children_poll_more_and_a_longer_poll_max_makes_them_poll_less() -> None:
    def polls(children: int, poll_max: float) -> float:
        fleet = Fleet(children=children, rate=0.0, seconds=30.0)
        return simulate(MEASURED, Choice(poll_max=poll_max), fleet).polls_per_second

    assert polls(100, 1.0) == pytest.approx(100 / 0.875, rel=0.2)
    assert polls(10, 1.0) < polls(100, 1.0)
    assert polls(100, 5.0) < polls(100, 1.0) / 2


def test_the_doorbell_spares_the_wait_for_the_next_poll() -> None:
    def p50(doorbell: float) -> float:
        return simulate(MEASURED, Choice(), Fleet(children=3, rate=2.0, seconds=60.0, doorbell=doorbell)).pickup_p50

    assert p50(1.0) < p50(0.0) / 3


def test_a_fleet_cap_holds_back_more_handlers_than_it_allows() -> None:
    def rate(cap: int | None) -> float:
        fleet = Fleet(children=10, rate=400.0, seconds=20.0, handler=0.1, cap=cap)
        return simulate(MEASURED, Choice(), fleet).per_second

    assert rate(5) <= 5 / 0.1
    assert rate(None) > 100


def test_the_backlog_of_an_outage_is_worked_off_after_it() -> None:
    found = simulate(MEASURED, Choice(), Fleet(children=10, rate=100.0, seconds=40.0, outage=(5.0, 10.0)))
    assert found.recovered is not None
    assert found.recovered < 20
    assert found.completed == pytest.approx(4_000, rel=0.1)


def test_simulations_are_repeatable() -> None:
    fleet = Fleet(children=5, rate=20.0, seconds=10.0)
    assert simulate(MEASURED, Choice(), fleet) == simulate(MEASURED, Choice(), fleet)


def test_the_program_prints_a_table_for_the_points_that_ship(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate_main(["--children", "5", "--seconds", "2", "--poll-min", "0.05", "--poll-max", "1", "--json"]) == 0
    assert "poll_max" in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.timeout(400)
def test_the_micro_benchmarks_run() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "bench/micro",
        "--benchmark-disable",
        "-k",
        "not 100 and not 500",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " failed" not in done.stdout
