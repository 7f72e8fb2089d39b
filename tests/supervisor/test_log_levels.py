"""The level of a whole worker, changed while it runs: by two signals, and by the file."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.observe.levels import DEBUG_SIGNAL, NORMAL_SIGNAL
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from tests.support.jobs import new_job
from tests.support.supervised import Event, Program

pytestmark = pytest.mark.processes
CODE = """
import structlog
from chokaq import ChokaQ

app = ChokaQ()
app.job("work.quick", dict, queue="work")


@app.handler("work.quick")
async def quick(job: dict) -> None:
    structlog.get_logger("shop").debug("own_debug")
    structlog.get_logger("shop").info("own_info")
"""
CONFIG = """
app: shop_app:app
database: sqlite:///jobs.db
queues: {{work: {{heartbeat: 1s, poll_max: 50ms}}}}
log_format: json
log_level: {level}
deck: {{enabled: {deck}, port: 0}}
supervisor: {{shutdown_grace: 5s, respawn_min: 50ms}}
"""


class Worker:
    """A running `chokaq worker` and its store."""

    def __init__(self, folder: Path, *, level: str = "info", deck: bool = False) -> None:
        self._folder, self._deck = folder, deck
        (folder / "shop_app.py").write_text(CODE)
        self.configure(level)
        self.program = Program(
            ["-m", "chokaq", "worker"], folder, {"PYTHONPATH": os.pathsep.join([str(folder), *_roots()])}
        )
        self.session: Session = open_store(DatabaseSettings(url=f"sqlite:///{folder / 'jobs.db'}")).session()

    def configure(self, level: str) -> None:
        """Write the file."""
        (self._folder / "chokaq.yaml").write_text(CONFIG.format(level=level, deck=str(self._deck).lower()))

    def run_job(self) -> str:
        """Have one job done; its id."""
        job = new_job(queue="work", type_key="work.quick", payload="{}")
        self.session.enqueue_jobs([job])
        self.program.until(lambda: self.session.get_statuses([job.id]) == [JobStatus.SUCCEEDED], "the job is done")
        return job.id

    def about(self, job: str) -> set[str]:
        """The names of the lines about a job."""
        return {event["event"] for event in self.program.events(job=job)}

    def changed(self, pids: set[int], level: str) -> list[Event]:
        """Until each of these processes has said that it logs at this level."""
        program = self.program

        def told() -> set[int]:
            return {event["pid"] for event in program.events("log_level_changed", level_now=level)}

        program.until(lambda: told() >= pids, f"{level} in {pids}")
        return program.events("log_level_changed", level_now=level)


def _roots() -> list[str]:
    return [str(Path(__file__).resolve().parents[2])]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    started: list[Worker] = []

    def begin(**options: object) -> Worker:
        started.append(one := Worker(tmp_path, **options))  # type: ignore[arg-type]
        one.program.wait("supervisor_ready", timeout=60)
        one.program.wait("maintenance_ready")
        return one

    yield begin
    for one in started:
        one.session.close()
        one.program.destroy()


def processes(program: Program) -> dict[str, int]:
    """Pid by what it is."""
    return {
        "supervisor": program.pid,
        "child": program.events("child_forked")[-1]["pid"],
        "maintenance": program.events("maintenance_forked")[-1]["pid"],
    }


@pytest.mark.timeout(240)
def test_a_signal_to_the_supervisor_reaches_every_process_and_another_takes_it_back(
    worker: Callable[..., Worker],
) -> None:
    one = worker(deck=True)
    program = one.program
    program.wait("deck_ready", timeout=90)
    pids = {*processes(program).values(), program.events("web_forked")[-1]["pid"]}
    assert len(pids) == 4
    quiet = one.run_job()

    program.send(DEBUG_SIGNAL)
    one.changed(pids, "debug")
    loud = one.run_job()
    program.wait("job_succeeded", job=loud)
    assert one.about(loud) >= {"own_debug", "own_info", "job_succeeded"}

    # A child that is forked meanwhile has the level of its supervisor.
    os.kill(processes(program)["child"], signal.SIGKILL)
    program.wait("child_ready", 2)
    after = one.run_job()
    program.wait("job_succeeded", job=after)

    pids = {*processes(program).values(), program.events("web_forked")[-1]["pid"]}
    program.send(NORMAL_SIGNAL)
    one.changed(pids, "info")
    last = one.run_job()
    assert program.events("signal", name="SIGRTMIN+22")
    assert program.events("signal", name="SIGRTMIN+23")
    assert program.end() == 0
    assert (one.about(quiet), one.about(last)) == ({"own_info"}, {"own_info"})
    [stopped] = program.events("worker_stopped", event_id=1001, exit_code=0)
    assert stopped["succeeded"] == 2


def test_a_signal_to_one_child_changes_that_child_alone(worker: Callable[..., Worker]) -> None:
    one = worker()
    child = processes(one.program)["child"]
    os.kill(child, DEBUG_SIGNAL)
    one.changed({child}, "debug")
    one.program.wait("job_succeeded", job=one.run_job())
    assert {event["pid"] for event in one.program.events("log_level_changed")} == {child}
    assert one.program.end() == 0


def test_a_changed_level_in_the_file_holds_after_a_hup_without_a_new_process(worker: Callable[..., Worker]) -> None:
    one = worker()
    program, pids = one.program, processes(one.program)
    one.configure("debug")
    program.send(signal.SIGHUP)
    [reloaded] = program.wait("reloaded")
    one.changed(set(pids.values()), "debug")
    program.wait("job_succeeded", job=one.run_job())

    one.configure("warning")
    program.send(signal.SIGHUP)
    one.changed(set(pids.values()), "warning")
    silent = one.run_job()
    # What a signal turns on goes back to what the file says now.
    program.send(DEBUG_SIGNAL)
    program.until(
        lambda: len(program.events("log_level_changed", level_now="debug")) == 2 * len(pids), "debug in all, again"
    )
    program.wait("job_succeeded", job=one.run_job())
    program.send(NORMAL_SIGNAL)
    program.until(
        lambda: len(program.events("log_level_changed", level_now="warning")) == 2 * len(pids), "warning in all, again"
    )
    assert one.about(silent) == set()
    assert reloaded["replaced"] == []
    assert processes(program) == pids
    assert program.end() == 0
