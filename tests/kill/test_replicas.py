"""Two replicas of the worker on one database share the work; stopping one loses and repeats nothing (C23, C24, C26)."""

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
from tests.support.ids import new_ids
from tests.support.polling import wait_until

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
app: killapp:app
database: {url}
queues:
  kill: {{max_workers: 4, prefetch: 4}}
"""
JOBS = 60


def replica(config: Path, ledger: Path, log: Path) -> "subprocess.Popen[bytes]":
    """One `chokaq worker`."""
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "chokaq", "worker", "--config", str(config)],
            env={**os.environ, "KILL_LEDGER": str(ledger), "PYTHONPATH": f"{PROGRAMS}{os.pathsep}{ROOT}"},
            stdout=out,
            stderr=out,
        )


def executions(ledger: Path) -> list[list[str]]:
    """Job id, type, attempt and supervisor pid of every execution so far."""
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


@pytest.mark.processes
def test_two_replicas_share_the_work_and_stopping_one_loses_and_repeats_nothing(
    store: Store, store_options: DatabaseSettings, tmp_path: Path
) -> None:
    config, ledger = tmp_path / "chokaq.yaml", tmp_path / "ledger"
    config.write_text(CONFIG.format(url=store_options.url))
    replicas = [replica(config, ledger, tmp_path / f"log{number}") for number in range(2)]
    session, ids = store.session(), new_ids(JOBS)
    try:
        wait_until(lambda: sum(w.queue == "kill" for w in session.list_workers()) == 2, "both replicas are there", 60)
        session.enqueue_jobs([NewJob(id=job, queue="kill", type_key="kill.slow", payload="{}") for job in ids])
        both = {str(worker.pid) for worker in replicas}
        wait_until(lambda: {run[3] for run in executions(ledger)} == both, "both replicas work", 60)
        replicas[0].send_signal(signal.SIGTERM)
        assert replicas[0].wait(40) == 0
        wait_until(lambda: all(s is not None and s.is_final for s in session.get_statuses(ids)), "every job ends", 60)
    finally:
        for worker in replicas:
            worker.send_signal(signal.SIGTERM)
        codes = [worker.wait(40) for worker in replicas]
    assert codes == [0, 0]
    assert set(session.get_statuses(ids)) == {JobStatus.SUCCEEDED}
    session.close()
    ran = Counter(run[0] for run in executions(ledger))
    assert ran == dict.fromkeys(ids, 1)
