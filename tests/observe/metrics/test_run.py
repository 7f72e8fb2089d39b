"""The folder of a worker: figures of the dead are kept once, gauges of the dead are gone, and folders of the dead as well."""

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from chokaq.observe.metrics import process
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.render import merge
from chokaq.observe.metrics.run import PREFIX, RETIRED, RunDirectory, read_all
from chokaq.observe.metrics.sink import sql
from chokaq.observe.metrics.values import ValueFile

COMPLETED = ("chokaq_jobs_completed_total", "q", "t")
PICKUP = ("chokaq_jobs_pickup_seconds", "q")
RUNNING = ("chokaq_child_running_jobs", "q")
MEMORY = ("chokaq_child_memory_bytes", "q")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    made = RunDirectory(MetricsSettings(directory=str(tmp_path)))
    yield made
    made.remove()


def lives(run: RunDirectory, pid: int, jobs: int = 1) -> Path:
    """What a process of that pid would have left behind after so many jobs."""
    file = ValueFile(run.path / f"{pid}-ab.figures")
    recorder = Recorder(file, run.settings)
    recorder.counter(*COMPLETED).add(jobs)
    for _ in range(jobs):
        recorder.histogram(*PICKUP).observe(0.25)
    recorder.gauge(*RUNNING).set(jobs)
    recorder.gauge(*MEMORY).set(1000 + pid)
    file.close()
    return file.path


def names(run: RunDirectory) -> set[str]:
    return {file.name for file in run.path.iterdir()}


def test_the_folder_is_private(run: RunDirectory) -> None:
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    assert run.path.name.startswith(f"{PREFIX}{os.getpid()}-")


def test_living_processes_are_summed_and_the_largest_is_the_largest(run: RunDirectory) -> None:
    lives(run, 1, 2)
    lives(run, 2, 3)
    merged = merge(read_all(run.path))
    assert merged[COMPLETED] == (5.0,)
    assert merged[RUNNING] == (5.0,)
    assert merged[MEMORY] == (1002.0,)
    assert merged[PICKUP][-1] == 1.25


def test_the_dead_keep_their_counts_and_lose_their_gauges(run: RunDirectory) -> None:
    lives(run, 1, 2)
    lives(run, 2, 3)
    run.retire(1)
    merged = merge(read_all(run.path))
    assert (merged[COMPLETED], merged[RUNNING], merged[MEMORY]) == ((5.0,), (3.0,), (1002.0,))
    run.retire(2)
    assert set(merge(read_all(run.path))) == {COMPLETED, PICKUP}
    assert names(run) == {RETIRED, "lock"}


def test_a_thousand_recycles_leave_two_files_and_exact_sums(run: RunDirectory) -> None:
    most = 0
    for number in range(1_000):
        lives(run, 10_000 + number, number % 7)
        run.retire(10_000 + number)
        most = max(most, len(names(run)))
    merged = merge(read_all(run.path))
    jobs = sum(number % 7 for number in range(1_000))
    assert merged[COMPLETED] == (jobs,)
    assert merged[PICKUP][:-1].count(0.0) == len(merged[PICKUP]) - 2
    assert sum(merged[PICKUP][:-1]) == jobs
    assert merged[PICKUP][-1] == jobs * 0.25
    assert most == 2
    assert (run.path / RETIRED).stat().st_size < 2_000


def test_the_retired_set_keeps_the_budgets_whatever_the_dead_have_seen(run: RunDirectory) -> None:
    run.settings = MetricsSettings(max_errors=3)
    for number in range(20):
        file = ValueFile(run.path / f"{number}-ab.figures")
        Recorder(file, run.settings).add("chokaq_jobs_failed_total", "q", "t", f"Error{number}")
        file.close()
        run.retire(number)
    merged = merge(read_all(run.path))
    errors = {key[3]: values[0] for key, values in merged.items()}
    assert errors == {"Error0": 1.0, "Error1": 1.0, "Error2": 1.0, "other": 17.0}


def test_a_crash_between_the_rename_and_the_deletion_counts_nothing_twice(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = lives(run, 1, 5)

    def interrupted(_self: Path, **_options: object) -> None:
        raise OSError("interrupted")

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(Path, "unlink", interrupted)
        run.retire(1)
    assert logs[0]["event"] == "metrics_not_folded"
    assert dead.exists()
    assert merge(read_all(run.path))[COMPLETED] == (5.0,)
    # Another dies: what was left over is finished first.
    lives(run, 2, 1)
    run.retire(2)
    assert names(run) == {RETIRED, "lock"}
    assert merge(read_all(run.path))[COMPLETED] == (6.0,)


def test_what_cannot_be_folded_now_is_folded_with_the_next_one(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives(run, 1, 5)
    lives(run, 2, 1)

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr("chokaq.observe.metrics.run.write_values", full)
        run.retire(1)
    assert [log["event"] for log in logs] == ["metrics_not_folded"]
    assert merge(read_all(run.path))[COMPLETED] == (6.0,)
    run.retire(2)
    assert names(run) == {RETIRED, "lock"}
    assert merge(read_all(run.path))[COMPLETED] == (6.0,)


def test_a_scrape_during_folds_never_sees_a_count_go_back_or_twice(run: RunDirectory) -> None:
    lives(run, 0, 1)
    done = threading.Event()

    def recycle() -> None:
        for pid in range(400):
            lives(run, pid + 1, 1)
            run.retire(pid)
        done.set()

    thread = threading.Thread(target=recycle)
    thread.start()
    last, scrapes = 0.0, 0
    while not done.is_set():
        jobs = merge(read_all(run.path))[COMPLETED][0]
        assert jobs >= last
        assert jobs <= 401
        last, scrapes = jobs, scrapes + 1
    thread.join()
    assert scrapes
    assert merge(read_all(run.path))[COMPLETED] == (401.0,)


def test_a_folder_that_is_gone_is_an_error_that_names_it(run: RunDirectory) -> None:
    shutil.rmtree(run.path)
    with pytest.raises(FileNotFoundError, match=run.path.name):
        read_all(run.path)


def test_folders_nobody_holds_any_more_are_deleted_and_others_are_left(tmp_path: Path) -> None:
    settings = MetricsSettings(directory=str(tmp_path))
    (tmp_path / f"{PREFIX}1-killed").mkdir()
    (tmp_path / f"{PREFIX}1-killed" / "lock").touch()
    (tmp_path / f"{PREFIX}1-strange").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    first = RunDirectory(settings)
    second = RunDirectory(settings)
    assert {folder.name for folder in tmp_path.iterdir()} == {
        first.path.name, second.path.name, f"{PREFIX}1-strange", "other", f"{PREFIX}link",
    }  # fmt: skip
    first.remove()
    second.remove()
    assert {folder.name for folder in tmp_path.iterdir()} == {f"{PREFIX}1-strange", "other", f"{PREFIX}link"}


def test_the_first_folder_that_can_be_written_is_taken(tmp_path: Path) -> None:
    for environ, parent in (
        ({"RUNTIME_DIRECTORY": f"{tmp_path}/a:{tmp_path}/b", "XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path / "a"),
        ({"RUNTIME_DIRECTORY": "/nowhere", "XDG_RUNTIME_DIR": str(tmp_path)}, tmp_path),
    ):
        (tmp_path / "a").mkdir(exist_ok=True)
        made = RunDirectory(MetricsSettings(), environ)
        assert made.path.parent == parent
        made.remove()


def test_a_forked_process_has_a_file_of_its_own_and_deletes_nothing(tmp_path: Path) -> None:
    run = process.begin_run(MetricsSettings(directory=str(tmp_path)))
    assert run is not None
    try:
        mine = process.begin_process()
        assert mine is not None
        mine.counter(*COMPLETED).add()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                own = process.begin_process()
                assert own is not None
                assert own is not mine
                own.counter(*COMPLETED).add(2)
                sql.failed("1205")
                process.end_run()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        run.retire(pid)
        merged = merge(read_all(run.path))
        assert merged == {COMPLETED: (3.0,), ("chokaq_sql_errors_total", "1205"): (1.0,)}
    finally:
        process.end_run()
    assert list(tmp_path.iterdir()) == []
    assert process.directory() is None
    assert sql.sink is None


def test_what_a_forked_process_does_before_it_has_a_file_of_its_own_is_not_written_into_its_parents(
    tmp_path: Path,
) -> None:
    run = process.begin_run(MetricsSettings(directory=str(tmp_path)))
    assert run is not None
    try:
        mine = process.begin_process()
        assert mine is not None
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert sql.sink is None
                sql.failed("1205")
                # Somebody in the child still holds the parent's: an application that its handler has forked.
                mine.add("chokaq_jobs_enqueued_total", "q", "t")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert sql.sink is mine
        mine.counter(*COMPLETED).add()
        assert merge(read_all(run.path)) == {COMPLETED: (1.0,)}
    finally:
        process.end_run()


def test_without_a_folder_to_write_the_worker_goes_on_uncounted(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert process.begin_run(MetricsSettings(directory=str(tmp_path / "missing"))) is None
        assert process.begin_process() is None
    assert [log["event"] for log in logs] == ["metrics_off"]
    assert logs[0]["way_out"] == "name one in metrics.directory"


def test_switched_off_nothing_is_made(tmp_path: Path) -> None:
    assert process.begin_run(MetricsSettings(enabled=False, directory=str(tmp_path))) is None
    assert process.begin_process() is None
    assert list(tmp_path.iterdir()) == []
