"""SIGKILL of a real child right before and right after every store call it makes (C1, C10): the worker as a whole loses nothing."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Store
from chokaq.store.records import NewJob
from tests.support.ids import new_id
from tests.support.polling import wait_until

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[2]
KINDS = ("ok", "slow", "retry", "snooze", "fatal")
PER_KIND = 6
CONFIG = """
app: killapp:app
database: {url}
queues:
  kill:
    max_workers: 12
    heartbeat: 200ms
    on_crash: retry
    crash_limit: 5
    max_attempts: 5
    retry_base_delay: 50ms
    retry_max_delay: 100ms
    retry_jitter: 10ms
    circuit: false
supervisor: {{respawn_min: 50ms, shutdown_grace: 20s}}
"""
CALLS = [
    ("register_worker", 1), ("fetch_jobs", 1), ("fetch_jobs", 2), ("start_jobs", 1), ("start_jobs", 2), ("keep_alive", 1),
    ("archive_succeeded", 1), ("archive_succeeded", 2), ("reschedule_for_retry", 1), ("archive_failed", 1), ("release_jobs", 1),
]  # fmt: skip


@pytest.mark.processes
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("operation", "countdown"), CALLS)
def test_every_job_ends_where_the_rules_say_though_a_child_dies_at_this_call(
    operation: str, countdown: int, moment: str, store: Store, store_options: DatabaseSettings, tmp_path: Path
) -> None:
    config, ledger, marker = tmp_path / "chokaq.yaml", tmp_path / "ledger", tmp_path / "killed"
    config.write_text(CONFIG.format(url=store_options.url))
    session = store.session()
    ids = {kind: [new_id() for _ in range(PER_KIND)] for kind in KINDS}
    session.enqueue_jobs(
        [NewJob(id=job, queue="kill", type_key=f"kill.{kind}", payload="{}") for kind in KINDS for job in ids[kind]]
    )
    every = [job for jobs in ids.values() for job in jobs]
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "doomed_worker.py"), str(config), operation, moment, str(countdown), str(marker)],
            env={**os.environ, "KILL_LEDGER": str(ledger), "PYTHONPATH": f"{PROGRAMS}{os.pathsep}{ROOT}"},
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_until(lambda: all(s is not None and s.is_final for s in session.get_statuses(every)), "every job ends", 60)
    except AssertionError:
        print((tmp_path / "log").read_text()[-4000:])
        raise
    finally:
        worker.send_signal(signal.SIGTERM)
        exit_code = worker.wait(30)
    assert exit_code == 0
    assert marker.exists(), f"no child made call {countdown} of {operation}"
    states = dict(zip(every, session.get_statuses(every), strict=True))
    for kind, jobs in ids.items():
        expected = JobStatus.FAILED if kind == "fatal" else JobStatus.SUCCEEDED
        assert {states[job] for job in jobs} == {expected}, kind
    session.close()
    check_ledger(ledger, ids, store)


def check_ledger(ledger: Path, ids: dict[str, list[str]], store: Store) -> None:
    """Every job ran; it ran again only for its own failure, its snooze, or a crash that its record shows."""
    ran = Counter(line.split()[0] for line in ledger.read_text().splitlines())
    session = store.session()
    for kind, jobs in ids.items():
        for job in jobs:
            view = session.get_job(job)
            assert view is not None
            own_runs = 2 if kind in ("retry", "snooze") else 1
            assert 1 <= ran[job] <= own_runs + view.crash_count, f"{kind} job {job} ran {ran[job]} times"
    session.close()
