"""The whole program on a real store: what its deaths, limits and drains mean for jobs (C13, C15, C20, C21, C24, C26, C47)."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session, Store
from chokaq.store.records import NewJob
from tests.support.ids import new_id
from tests.support.lab import Lab
from tests.support.polling import wait_until

from .harness import PROGRAMS, Program, alive

pytestmark = pytest.mark.processes
CONFIG = """
app: shop:app
database: {url}
queues:
  work: {{max_workers: 5, heartbeat: 1s, {work}}}
  other: {{max_workers: 2, heartbeat: 1s}}
supervisor: {{shutdown_grace: {grace}, respawn_min: 50ms, respawn_max: 200ms}}
"""


class Shop:
    """A running worker, its store, and what its handlers have done."""

    def __init__(self, folder: Path, session: Session, url: str, work: str, grace: str) -> None:
        self.session, self.ledger = session, folder / "ledger"
        config = folder / "chokaq.yaml"
        config.write_text(CONFIG.format(url=url, work=work, grace=grace))
        self.program = Program(
            [str(PROGRAMS / "real_worker.py"), str(config)],
            folder,
            {"LEDGER": str(self.ledger), "PYTHONPATH": os.pathsep.join([str(PROGRAMS), str(PROGRAMS.parents[2])])},
        )

    def put(self, type_key: str, count: int = 1, payload: str = "{}") -> list[str]:
        """Enqueue jobs."""
        queue = type_key.partition(".")[0]
        jobs = [NewJob(id=new_id(), queue=queue, type_key=type_key, payload=payload) for _ in range(count)]
        self.session.enqueue_jobs(jobs)
        return [job.id for job in jobs]

    def runs(self, *job_ids: str) -> list[str]:
        """The executions of these jobs so far: `id type attempt pid`."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [line for line in lines if line.split()[0] in job_ids]

    def wait_for_runs(self, job_ids: list[str], count: int) -> list[str]:
        """Until the handlers of these jobs have begun that often."""
        self._wait(lambda: len(self.runs(*job_ids)) >= count, f"{count} executions")
        return self.runs(*job_ids)

    def wait_for(self, job_ids: list[str], status: JobStatus) -> None:
        """Until all of them are in that state."""
        self._wait(lambda: set(self.session.get_statuses(job_ids)) == {status}, f"{status.label} for {job_ids}")

    def child(self, queue: str) -> int:
        """Pid of the newest ready child."""
        return int(self.ready(queue)[-1])

    def ready(self, queue: str, count: int = 1) -> list[int]:
        """Pids of the children that became ready, once there are that many."""
        self._wait(lambda: len(self._ready(queue)) >= count, f"{count} children of {queue}")
        return self._ready(queue)

    def _ready(self, queue: str) -> list[int]:
        return [event["pid"] for event in self.program.events("child_ready", queue=queue)]

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, what, 40)
        except AssertionError as error:
            raise AssertionError(f"{error}; the log:\n{self.program.log.read_text()[-6000:]}") from None


@pytest.fixture
def shop(
    store: Store, session: Session, store_options: DatabaseSettings, tmp_path: Path
) -> Iterator[Callable[..., Shop]]:
    """Start a worker: `shop(work="on_crash: retry")`."""
    started: list[Shop] = []

    def begin(work: str = "", grace: str = "10s") -> Shop:
        started.append(Shop(tmp_path, session, store_options.url, work or "max_attempts: 3", grace))
        return started[-1]

    yield begin
    for one in started:
        one.program.destroy()


def test_jobs_run_and_the_drain_is_clean(shop: Callable[..., Shop]) -> None:
    one = shop()
    jobs = one.put("work.quick", 50) + one.put("other.quick", 50)
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    # The parent, of which every child is a copy, holds no database, no connection to one, and no thread (C18, C22).
    files = [str(path.readlink()) for path in Path(f"/proc/{one.program.pid}/fd").iterdir()]
    assert not [file for file in files if "chokaq" in file and ".db" in file]
    assert not [file for file in files if file.removeprefix("socket:[").removesuffix("]") in tcp_sockets()]
    assert len(list(Path(f"/proc/{one.program.pid}/task").iterdir())) == 1
    assert one.program.end() == 0
    assert len(one.runs(*jobs)) == 100
    assert one.session.list_workers() == []


def tcp_sockets() -> set[str]:
    """Inodes of every TCP socket of this host."""
    lines = [line for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {line.split()[9] for line in lines}


def test_a_job_longer_than_the_grace_outlasts_the_recycling_of_its_child(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    one, gate = shop("max_jobs: 2", grace="5s"), tmp_path / "gate"
    [long] = one.put("work.wait", 1, f'{{"file": "{gate}"}}')
    one.wait_for_runs([long], 1)
    one.wait_for(one.put("work.quick", 2), JobStatus.SUCCEEDED)
    one.program.wait("drain_started", reason="recycle")
    # Its handler would be cancelled at once, with this grace, and its successor would run the job again.
    one.wait_for(one.put("work.quick"), JobStatus.SUCCEEDED)
    assert len(one.runs(long)) == 1
    gate.touch()
    one.wait_for([long], JobStatus.SUCCEEDED)
    assert len(one.runs(long)) == 1
    assert one.program.end() == 0


def test_a_worker_that_an_operator_drains_is_replaced_and_finishes_what_it_runs(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    one, gate = shop(grace="5s"), tmp_path / "gate"
    [long] = one.put("work.wait", 1, f'{{"file": "{gate}"}}')
    [run] = one.wait_for_runs([long], 1)
    [drained] = [worker for worker in one.session.list_workers() if worker.queue == "work"]
    assert run.split()[-1] == str(drained.pid)
    assert one.session.drain_worker(drained.worker_id, "ann", "leaks").result == "accepted"
    one.program.wait("drain_started", pid=drained.pid)
    one.program.wait("draining", queue="work")
    first, second = one.ready("work", 2)
    assert first == drained.pid
    quick = one.put("work.quick", 5)
    one.wait_for(quick, JobStatus.SUCCEEDED)
    assert {run.split()[-1] for run in one.runs(*quick)} == {str(second)}
    gate.touch()
    one.wait_for([long], JobStatus.SUCCEEDED)
    assert len(one.runs(long)) == 1
    one.program.wait("child_died", pid=drained.pid)
    assert one.program.end() == 0
    assert len(one.ready("work", 2)) == 2


def test_a_killed_child_frees_its_jobs_at_once_and_leaves_its_last_words(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    one = shop("on_crash: retry, retry_base_delay: 50ms, retry_jitter: 0s")
    other = one.child("other")
    gate = tmp_path / "gate"
    jobs = one.put("work.wait", 8, f'{{"file": "{gate}"}}')
    one.wait_for_runs(jobs, 5)
    os.kill(one.child("work"), signal.SIGKILL)
    one.ready("work", 2)
    gate.touch()
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    # Five had begun and ran again, charged; three were only buffered.
    assert sorted(int(line.split()[2]) for line in one.runs(*jobs)) == [1] * 8 + [2] * 5
    crashed = [job for job in jobs if one.session.list_attempts(job)]
    assert len(crashed) == 5
    [attempt] = one.session.list_attempts(crashed[0])
    assert "signal 9" in attempt.error.message
    assert "memory" in attempt.error.message
    assert "last pulse" in attempt.error.message
    assert one.child("other") == other
    # C3: the successor, of the same name on the same host, is another worker, so that it hides nothing of the dead one.
    workers = [worker for worker in one.session.list_workers(ended=True) if worker.queue == "work"]
    assert len({worker.worker_id for worker in workers}) == 2
    assert len({worker.host for worker in workers}) == 1
    [dead] = [worker for worker in workers if worker.worker_id == attempt.worker_id]
    assert "signal 9" in (dead.ended_cause or "")
    assert one.program.end() == 0


def test_no_transaction_is_open_while_handlers_run(shop: Callable[..., Shop], lab: Lab, tmp_path: Path) -> None:
    """C29: a stranger changes the rows of everything that runs, and waits for nobody."""
    one, gate = shop(), tmp_path / "gate"
    jobs = one.put("work.wait", 5, f'{{"file": "{gate}"}}')
    one.wait_for_runs(jobs, 5)
    assert lab.execute("UPDATE {JobsHot} SET Progress = 7 WHERE Status = 2") == 5
    gate.touch()
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    assert one.program.end() == 0


def test_by_default_the_jobs_of_a_killed_child_go_to_the_dlq(shop: Callable[..., Shop], tmp_path: Path) -> None:
    one = shop()
    jobs = one.put("work.wait", 2, f'{{"file": "{tmp_path / "never"}"}}')
    one.wait_for_runs(jobs, 2)
    os.kill(one.child("work"), signal.SIGKILL)
    one.wait_for(jobs, JobStatus.ZOMBIE)
    assert one.program.end() == 0


@pytest.mark.parametrize("way", ["work.die", "work.leave"])
def test_a_job_that_ends_its_process_every_time_is_poison(shop: Callable[..., Shop], way: str) -> None:
    one = shop("on_crash: retry, crash_limit: 3, max_attempts: 9, retry_base_delay: 10ms, retry_jitter: 0s")
    [poison] = one.put(way)
    one.wait_for([poison], JobStatus.ZOMBIE)
    job = one.session.get_job(poison)
    assert job is not None
    assert (job.failure_reason, job.crash_count) == (FailureReason.POISON, 3)
    assert len(one.runs(poison)) == 3
    # C13, C21: not "terminated unexpectedly", but how, each time, and in the DLQ too.
    how = "signal 11" if way == "work.die" else "exit code 0"
    records = [attempt.error.message for attempt in one.session.list_attempts(poison)]
    assert len(records) == 3
    for record in [*records, job.error_message or ""]:
        assert how in record
        assert "memory" in record
        assert "last pulse" in record
    jobs = one.put("work.quick", 3)
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    assert one.program.end() == 0


def test_a_crash_policy_given_in_code_is_obeyed(shop: Callable[..., Shop]) -> None:
    one = shop("on_crash: dead_letter, crash_limit: 1, max_attempts: 9")
    [frail] = one.put("work.frail")
    one.wait_for([frail], JobStatus.SUCCEEDED)
    job = one.session.get_job(frail)
    assert job is not None
    assert (job.crash_count, job.attempt_count) == (2, 3)
    assert one.program.end() == 0


def test_a_blocking_handler_costs_its_child_and_its_neighbours_are_handed_back(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    """C20: they begin again elsewhere, and the run that was cut short is not charged to them."""
    one, gate = shop("hard_limit_grace: 1s"), tmp_path / "gate"
    neighbours = one.put("work.wait", 3, f'{{"file": "{gate}"}}')
    one.wait_for_runs(neighbours, 3)
    [blocked] = one.put("work.block_briefly")
    one.wait_for_runs([blocked], 1)
    one.wait_for([blocked], JobStatus.FAILED)
    again = one.wait_for_runs(neighbours, 6)[3:]
    assert {run.split()[2] for run in again} == {"1"}
    gate.touch()
    one.wait_for(neighbours, JobStatus.SUCCEEDED)
    for neighbour in neighbours:
        done = one.session.get_job(neighbour)
        assert done is not None
        assert (done.attempt_count, done.crash_count, one.session.list_attempts(neighbour)) == (1, 0, [])
    job = one.session.get_job(blocked)
    assert job is not None
    assert job.failure_reason == FailureReason.TIMEOUT
    [dead] = one.program.wait("child_died", queue="work")
    assert (dead["signal"], dead["cause"]) == (signal.SIGKILL, "limit")
    jobs = one.put("work.quick", 3)
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    assert one.program.end() == 0


def test_a_running_job_that_ignores_its_cancellation_ends_cancelled_by_the_hard_limit(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    """C47: the flag, then the cancellation, then the end of its process; whoever ran beside it runs again."""
    one, gate = shop("execution_timeout: 1h, hard_limit_grace: 1s"), tmp_path / "gate"
    [neighbour] = one.put("work.wait", 1, f'{{"file": "{gate}"}}')
    [blocked] = one.put("work.block")
    one.wait_for_runs([blocked, neighbour], 2)
    [answer] = one.session.cancel_jobs([blocked], "ann", "it hangs")
    assert answer.result == "requested"
    one.wait_for([blocked], JobStatus.CANCELLED)
    [dead] = one.program.wait("child_died", queue="work")
    assert (dead["signal"], dead["cause"]) == (signal.SIGKILL, "limit")
    gate.touch()
    one.wait_for([neighbour], JobStatus.SUCCEEDED)
    assert len(one.runs(blocked)) == 1
    assert one.program.end() == 0


def test_a_handler_that_holds_the_interpreter_is_seen_and_its_crash_counted(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    one = shop("stall_limit: 2s, on_crash: retry, retry_base_delay: 10ms, retry_jitter: 0s")
    [hog] = one.put("work.block_once", 1, f'{{"file": "{tmp_path / "hogged"}"}}')
    one.program.wait("child_stalled", timeout=40)
    one.wait_for([hog], JobStatus.SUCCEEDED)
    job = one.session.get_job(hog)
    assert job is not None
    assert (job.attempt_count, job.crash_count) == (2, 1)
    assert one.program.end() == 0


def test_a_drain_hands_back_what_would_not_end_and_charges_nothing(shop: Callable[..., Shop], tmp_path: Path) -> None:
    one = shop("execution_timeout: 1h", grace="4s")
    [blocked] = one.put("work.block")
    one.wait_for_runs([blocked], 1)
    assert one.program.end() == 1
    job = one.session.get_job(blocked)
    assert job is not None
    assert (job.status, job.attempt_count, job.crash_count) == (JobStatus.PENDING, 0, 0)


def test_when_the_supervisor_is_killed_its_children_drain_and_end_and_nothing_is_lost(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    one = shop(grace="8s")
    gate = tmp_path / "gate"
    jobs = one.put("work.wait", 8, f'{{"file": "{gate}"}}')
    one.wait_for_runs(jobs, 5)
    [keeper] = one.program.wait("maintenance_forked")
    pids = [one.child("work"), one.child("other"), keeper["pid"]]
    os.kill(one.program.pid, signal.SIGKILL)
    one.program.exit_code()
    gate.touch()
    wait_until(lambda: not any(alive(pid) for pid in pids), "the end of every child", 20)
    statuses = one.session.get_statuses(jobs)
    assert sorted(statuses) == [JobStatus.PENDING] * 3 + [JobStatus.SUCCEEDED] * 5
    assert one.session.list_workers() == []


def test_killed_maintenance_is_replaced_and_a_later_death_is_still_told(
    shop: Callable[..., Shop], tmp_path: Path
) -> None:
    one = shop("on_crash: retry, retry_base_delay: 50ms, retry_jitter: 0s")
    gate = tmp_path / "gate"
    jobs = one.put("work.wait", 2, f'{{"file": "{gate}"}}')
    one.wait_for_runs(jobs, 2)
    os.kill(one.program.wait("maintenance_ready")[0]["pid"], signal.SIGKILL)
    os.kill(one.child("work"), signal.SIGKILL)
    gate.touch()
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    assert one.program.end() == 0


def test_recycling_loses_and_repeats_nothing(shop: Callable[..., Shop]) -> None:
    one = shop("max_jobs: 50")
    jobs = one.put("work.quick", 600)
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    one.program.wait("drain_started", reason="recycle")
    assert one.program.end() == 0
    assert len(one.runs(*jobs)) == 600


def test_a_rolling_restart_under_load_loses_and_repeats_nothing(shop: Callable[..., Shop]) -> None:
    one = shop("processes: 2")
    one.ready("work", 2)
    jobs = one.put("work.quick", 450)
    one.wait_for_runs(jobs, 100)
    one.program.send(signal.SIGUSR2)
    jobs += one.put("work.quick", 450)
    one.ready("work", 4)
    one.ready("other", 2)
    jobs += one.put("work.quick", 100)
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    one.program.wait("drain_started", 3, reason="rolling_restart")
    assert one.program.end() == 0
    assert len(one.runs(*jobs)) == 1_000


def test_a_reload_reaches_the_children(shop: Callable[..., Shop], tmp_path: Path) -> None:
    one = shop("max_attempts: 3")
    [before] = one.ready("work")
    config = tmp_path / "chokaq.yaml"
    config.write_text(config.read_text().replace("max_workers: 5", "max_workers: 1"))
    one.program.send(signal.SIGHUP)
    one.program.wait("child_died", pid=before)
    jobs = one.put("work.wait", 3, f'{{"file": "{tmp_path / "gate"}"}}')
    one.wait_for_runs(jobs, 1)
    quick = one.put("other.quick", 5)
    one.wait_for(quick, JobStatus.SUCCEEDED)
    assert len(one.runs(*jobs)) == 1
    (tmp_path / "gate").touch()
    one.wait_for(jobs, JobStatus.SUCCEEDED)
    assert one.program.end() == 0


def test_term_to_the_whole_group_loses_and_charges_nothing(shop: Callable[..., Shop], tmp_path: Path) -> None:
    """C23."""
    one = shop(grace="20s")
    gate = tmp_path / "gate"
    jobs = one.put("work.wait", 8, f'{{"file": "{gate}"}}')
    one.wait_for_runs(jobs, 5)
    os.killpg(one.program.pid, signal.SIGTERM)
    one.program.wait("drain_started", 2)
    gate.touch()
    assert one.program.exit_code() == 0
    assert sorted(one.session.get_statuses(jobs)) == [JobStatus.PENDING] * 3 + [JobStatus.SUCCEEDED] * 5


def test_a_store_that_cannot_be_used_stops_the_program_without_a_traceback(tmp_path: Path) -> None:
    config = tmp_path / "chokaq.yaml"
    config.write_text(CONFIG.format(url="sqlite:////proc/nowhere/chokaq.db", work="max_attempts: 3", grace="5s"))
    program = Program(
        [str(PROGRAMS / "real_worker.py"), str(config)], tmp_path, {"PYTHONPATH": f"{PROGRAMS}:{PROGRAMS.parents[2]}"}
    )
    try:
        assert program.exit_code() == 78
        assert "Traceback" not in program.log.read_text()
    finally:
        program.destroy()


def test_an_application_that_cannot_be_imported_stops_the_program_with_one_clear_line(
    store: Store, store_options: DatabaseSettings, tmp_path: Path
) -> None:
    config = tmp_path / "chokaq.yaml"
    config.write_text(
        CONFIG.format(url=store_options.url, work="max_attempts: 3", grace="5s").replace("shop:app", "nowhere:app")
    )
    program = Program([str(PROGRAMS / "real_worker.py"), str(config), "undescribed"], tmp_path)
    try:
        assert program.exit_code() == 78
        assert "nowhere" in program.log.read_text()
        assert "Traceback" not in program.log.read_text()
    finally:
        program.destroy()
