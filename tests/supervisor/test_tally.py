"""What a supervisor counts: why children are replaced, how many are there; and the whole worker in one exposition."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from chokaq.config.settings import Settings
from chokaq.lifecycle.states import DeathCause, JobStatus
from chokaq.observe.metrics import MetricsSettings, directory
from chokaq.observe.metrics.render import merge
from chokaq.observe.metrics.run import read_all
from chokaq.store.options import DatabaseSettings
from chokaq.supervisor.children import Child
from chokaq.supervisor.reaper import Exit
from chokaq.supervisor.tally import SupervisorTally, build_info, restart_cause
from chokaq.worker.status import ExitCode
from tests.support.figures import of, short

from .test_real_processes import Shop, shop  # noqa: F401 - the fixture

Entries = dict[tuple[str, ...], tuple[float, ...]]


def child(drained: str | None = None, killed: DeathCause | None = None) -> Child:
    return Child(pid=1, slot=0, forked_at=0.0, name="q#0", drain_reason=drained, killed_for=killed)


def ended(code: int | None = None, number: int | None = None) -> Exit:
    return Exit(pid=1, code=code, signal=number, peak_memory_kb=1)


@pytest.mark.parametrize(
    ("one", "end", "ready", "cause"),
    [
        (child(), ended(number=9), True, "crash"),
        (child(), ended(code=1), True, "crash"),
        (child(), ended(code=ExitCode.BOOT_FAILED), False, "boot"),
        (child(), ended(number=11), False, "boot"),
        (child(), ended(code=ExitCode.RETIRED), True, "retired"),
        (child(), ended(code=ExitCode.DONE), True, "exit"),
        (child("by_itself"), ended(code=ExitCode.DONE), True, "exit"),
        (child("recycle"), ended(code=ExitCode.DONE), True, "recycle"),
        (child("reload"), ended(code=ExitCode.DONE), True, "reload"),
        (child("rolling_restart"), ended(code=ExitCode.DONE), True, "rolling_restart"),
        (child("recycle"), ended(number=11), True, "crash"),
        (child("recycle", DeathCause.SHUTDOWN), ended(number=9), True, "recycle"),
        (child("hard_limit", DeathCause.LIMIT), ended(number=9), True, "limit"),
        (child("hard_limit"), ended(code=ExitCode.DONE), True, "limit"),
        (child("recycle", DeathCause.LIMIT), ended(number=9), True, "limit"),
        (child(None, DeathCause.CRASH), ended(number=9), True, "stall"),
    ],
)
def test_a_child_is_replaced_for_one_of_a_few_causes(one: Child, end: Exit, ready: bool, cause: str) -> None:
    assert restart_cause(one, end, was_ready=ready) == cause


@pytest.fixture
def tally(tmp_path: Path) -> Iterator[SupervisorTally]:
    made = SupervisorTally()
    made.begin(Settings(metrics=MetricsSettings(directory=str(tmp_path))))
    yield made
    made.close()


def figures() -> Entries:
    run = directory()
    assert run is not None
    return short(merge(read_all(run)))


def test_children_are_shown_per_queue_and_a_closed_queue_is_not(tally: SupervisorTally) -> None:
    tally.state({"a": (2, 1), "b": (1, 1)}, ready=False)
    assert of(figures(), "ready") == 0
    assert (of(figures(), "children", "a", "wanted"), of(figures(), "children", "a", "ready")) == (2, 1)
    tally.state({"a": (2, 2)}, ready=True)
    found = figures()
    assert of(found, "ready") == 1
    assert {key[1:] for key in found if key[0] == "children"} == {("a", "wanted"), ("a", "ready")}
    tally.state({"a": (2, 2), "b": (1, 0)}, ready=True)
    assert of(figures(), "children", "b", "wanted") == 1


def test_who_counts_says_what_it_is(tally: SupervisorTally) -> None:
    tally.service_restarts("web", "crash")
    found = figures()
    assert of(found, "service_restarts", "web", "crash") == 1
    assert of(found, "build_info", *build_info(Settings())) == 1
    assert build_info(Settings(database=DatabaseSettings(url="mssql://sql/db")))[2] == "sqlserver"


def test_new_budgets_hold_for_those_forked_from_now_on(tally: SupervisorTally, tmp_path: Path) -> None:
    tally.reload(Settings(metrics=MetricsSettings(max_types=7, directory=str(tmp_path))))
    assert tally._run is not None
    assert tally._run.settings.max_types == 7


def test_a_reload_that_would_switch_metrics_off_or_move_them_says_that_it_takes_a_restart(
    tally: SupervisorTally, tmp_path: Path
) -> None:
    same = MetricsSettings(directory=str(tmp_path))
    with capture_logs() as logs:
        tally.reload(Settings(metrics=same))
        assert logs == []
        tally.reload(Settings(metrics=msgspec.structs.replace(same, enabled=False)))
        tally.reload(Settings(metrics=msgspec.structs.replace(same, enabled=False)))
    assert [(log["event"], log["log_level"]) for log in logs] == [("metrics_need_restart", "warning")]
    tally.child_restarts("q", "crash")
    assert of(figures(), "child_restarts", "q", "crash") == 1


def test_switched_off_nothing_is_made_and_nothing_fails(tmp_path: Path) -> None:
    made = SupervisorTally()
    made.begin(Settings(metrics=MetricsSettings(enabled=False, directory=str(tmp_path))))
    made.state({"a": (1, 1)}, ready=True)
    made.child_restarts("a", "crash")
    made.service_restarts("web", "crash")
    made.buried(1)
    made.reload(Settings())
    made.close()
    assert list(tmp_path.iterdir()) == []
    assert directory() is None


# ── the whole worker ──────────────────────────────────────────────────────────────────────────────────────────────────
class Scraped:
    """A running worker's run directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def run(self) -> Path:
        (run,) = [path for path in self._folder.iterdir() if path.name.startswith("chokaq-metrics-")]
        return run

    def all(self) -> Entries:
        return short(merge(read_all(self.run)))

    def count(self, name: str, *labels: str) -> float:
        return of(self.all(), name, *labels)


@pytest.fixture
def worker(
    shop: Callable[..., Shop],  # noqa: F811 - the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[Shop, Scraped]]:
    """A worker that puts its figures below the test's folder."""

    def begin(work: str = "") -> tuple[Shop, Scraped]:
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
        return shop(work=work), Scraped(tmp_path)

    return begin


@pytest.mark.processes
def test_the_whole_worker_is_one_exposition_and_a_killed_child_loses_nothing(
    worker: Callable[..., tuple[Shop, Scraped]],
) -> None:
    one, scraped = worker("on_crash: retry, retry_base_delay: 10ms, retry_jitter: 0ms")
    first = one.put("work.quick", 30) + one.put("other.quick", 20)
    one.wait_for(first, JobStatus.SUCCEEDED)
    one._wait(lambda: scraped.count("jobs_completed", "work", "work.quick") == 30, "all counted")
    assert scraped.count("jobs_completed", "other", "other.quick") == 20
    assert scraped.count("jobs_queue_lag_seconds", "work", "work.quick") == 30
    one._wait(lambda: scraped.count("workers_active", "work") == 1, "the leader's gauges")
    assert scraped.count("leader", "main") == 1
    one._wait(lambda: scraped.count("child_capacity", "work") == 5, "its children's gauges")
    pid = one.child("work")
    os.kill(pid, signal.SIGKILL)
    one.ready("work", 2)
    one._wait(lambda: scraped.count("child_restarts", "work", "crash") == 1, "the restart")
    assert scraped.count("jobs_completed", "work", "work.quick") == 30
    one._wait(lambda: scraped.count("child_capacity", "work") == 5, "the successor's gauges, and not both")
    more = one.put("work.quick", 10)
    one.wait_for(more, JobStatus.SUCCEEDED)
    one._wait(lambda: scraped.count("jobs_completed", "work", "work.quick") == 40, "old and new")
    assert not list(scraped.run.glob(f"{pid}-*"))
    run = scraped.run
    assert one.program.end() == 0
    assert not run.exists()


@pytest.mark.processes
def test_recycled_children_leave_their_counts_and_no_files(worker: Callable[..., tuple[Shop, Scraped]]) -> None:
    one, scraped = worker("max_jobs: 5")
    done = 0
    for turn in range(1, 5):
        jobs = one.put("work.quick", 5)
        done += 5
        one.wait_for(jobs, JobStatus.SUCCEEDED)
        one._wait(lambda turn=turn: scraped.count("child_restarts", "work", "recycle") == turn, "recycled")
    one._wait(lambda: scraped.count("jobs_completed", "work", "work.quick") == done, "all counted")
    # The supervisor, maintenance, a child of each queue, and all that have ended.
    one._wait(lambda: len(list(scraped.run.glob("*.figures"))) == 5, "five files")
