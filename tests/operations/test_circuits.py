"""Circuits over the whole fleet: what an operator sees, and what an order does to real children, on every store."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import JobStatus
from chokaq.operations import OperationError, by, force_circuit, list_circuits, read_status
from chokaq.store.circuits import CircuitChange
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from tests.support.holder import Holder
from tests.support.jobs import TYPE, new_job, worker_info
from tests.support.lab import Lab
from tests.support.polling import wait_until

ANNA = by("anna", "the provider is down")
CLOSED, OPEN, HALF_OPEN = CircuitState
ROOT = Path(__file__).parents[2]
PARENT = ROOT / "tests" / "worker" / "programs" / "parent.py"
NOTE = "note.v1"


def say(holder: Holder, state: CircuitState, failures: int = 5, type_key: str = TYPE, **fields: object) -> None:
    """A worker reports."""
    change = CircuitChange(type_key=type_key, state=state, failures=failures, generation=1, **fields)  # type: ignore[arg-type]
    holder.session.report_circuits(holder.worker, [change])


def test_a_type_is_as_bad_as_its_worst_worker(session: Session) -> None:
    one, two, three = Holder(session), Holder(session, "reports"), Holder(session)
    say(one, CLOSED, 1, changed_ms=90_000, last_error="OSError")
    say(two, OPEN, 7, changed_ms=1_000, next_probe_ms=20_000, last_error="ConnectionError")
    say(three, HALF_OPEN, 5, changed_ms=60_000)
    say(one, CLOSED, 0, "b.v1")

    first, second = list_circuits(session)

    assert (first.type_key, first.state, first.open, first.half_open, first.workers) == (TYPE, OPEN, 1, 1, 3)
    assert (first.failures, first.last_error, first.order) == (7, "ConnectionError", None)
    assert first.next_probe_ms is not None
    assert 0 < first.next_probe_ms <= 20_000
    assert {view.worker_id for view in first.reports} == {one.id, two.id, three.id}
    assert (second.type_key, second.state, second.workers) == ("b.v1", CLOSED, 1)


def test_an_order_is_seen_with_who_and_why_also_before_any_worker_met_the_type(session: Session) -> None:
    status = force_circuit(session, TYPE.upper(), "open", ANNA)
    assert (status.type_key, status.state, status.workers) == (TYPE, OPEN, 0)
    assert status.order is not None
    assert (status.order.forced, status.order.actor, status.order.reason) == (
        Forced.OPEN,
        "anna",
        "the provider is down",
    )
    assert list_circuits(session) == [status]

    cleared = force_circuit(session, TYPE, "clear", ANNA)
    assert (cleared.order, cleared.state) == (None, CLOSED)
    assert list_circuits(session) == []
    assert [(entry.actor, entry.reason) for entry in session.list_audit(TYPE)] == [("anna", "the provider is down")] * 2


@pytest.mark.parametrize(
    ("type_key", "order", "message"),
    [
        ("", "open", "is not a type key"),
        (" t", "open", "is not a type key"),
        ("ü", "open", "is not a type key"),
        ("x" * 256, "open", "is not a type key"),
        (TYPE, "ajar", "forced to open, closed, clear, not 'ajar'"),
    ],
)
def test_what_is_no_order_is_refused(session: Session, type_key: str, order: str, message: str) -> None:
    with pytest.raises(OperationError, match=message):
        force_circuit(session, type_key, order, ANNA)
    assert session.list_audit() == []


def test_status_tells_of_open_circuits_as_problems_and_of_forced_ones_as_notes(session: Session) -> None:
    session.register_worker(worker_info(""))
    holder = Holder(session)
    say(holder, CLOSED, 3)
    assert (read_status(session).problems, read_status(session).circuits) == ([], [])

    say(holder, OPEN, last_error="OSError")
    found = read_status(session)
    assert [circuit.type_key for circuit in found.circuits] == [TYPE]
    told = f"The circuit of {TYPE} is open on 1 worker after 5 failures in a row, last OSError: its jobs wait until one succeeds."
    assert found.problems == [f"{told} `chokaq circuits` shows more."]
    say(holder, HALF_OPEN)
    assert "is being tried on 1 worker" in read_status(session).problems[0]

    force_circuit(session, TYPE, "closed", ANNA)
    found = read_status(session)
    assert found.problems == []
    assert found.notes == [
        f"The circuit of {TYPE} is forced closed by anna (the provider is down): `chokaq circuits force {TYPE} clear`."
    ]


class Fleet:
    """Real children of the queue `notes`, each under a parent of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.parents: list[subprocess.Popen[str]] = []
        self.pids: list[int] = []

    def start(self) -> None:
        """Another child; returns once it is ready."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CHOKAQ_TEST_FOLDER": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder),
        }
        parent = subprocess.Popen(
            [sys.executable, str(PARENT), self.url, "tests.worker.programs.jobs_app:app", "30"],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.parents.append(parent)
        assert parent.stdout is not None
        self.pids.append(int(parent.stdout.readline()))
        while (line := parent.stdout.readline().strip()) != "ready":
            assert line, "the child ended while it booted"

    def stop(self) -> None:
        """Drain them all."""
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)
        for parent in self.parents:
            parent.communicate(timeout=60)


@pytest.fixture
def fleet(store_options: DatabaseSettings, session: Session, tmp_path: Path) -> Iterator[Fleet]:
    """None running yet. (`session`: the schema is applied.)"""
    found = Fleet(store_options.url, tmp_path)
    yield found
    found.stop()


@pytest.mark.processes
def test_g14_an_order_holds_for_children_that_run_and_for_those_started_later(
    session: Session, lab: Lab, fleet: Fleet
) -> None:
    def enqueue(name: str) -> str:
        job = new_job(queue="notes", type_key=NOTE, payload=f'{{"name":"{name}"}}')
        session.enqueue_jobs([job])
        return job.id

    def is_done(job_id: str) -> bool:
        job = session.get_job(job_id)
        return job is not None and job.status is JobStatus.SUCCEEDED

    def was_denied(job_id: str) -> bool:
        row = lab.row(job_id)
        return (row["Status"], row["LeaseNumber"] >= 1, row["IsReady"]) == (0, True, 0)

    fleet.start()
    first = enqueue("first")
    wait_until(lambda: is_done(first), "the first job is done", 60)

    force_circuit(session, NOTE, "open", ANNA)
    fleet.start()
    wait_until(lambda: [s.open for s in list_circuits(session)] == [1], "the order is followed", 60)
    jobs = [enqueue(f"denied-{n}") for n in range(6)]
    wait_until(lambda: all(was_denied(job) for job in jobs), "all are denied", 60)
    assert not list(fleet.folder.glob("denied-*"))
    assert {lab.row(job)["AttemptCount"] for job in jobs} == {0}

    force_circuit(session, NOTE, "clear", ANNA)
    for job in jobs:
        if lab.count("JobsHot", f"Id = '{job}'"):
            lab.age(job, "DueAtUtc", 6_000)
    wait_until(lambda: all(is_done(job) for job in jobs), "all are done", 60)
