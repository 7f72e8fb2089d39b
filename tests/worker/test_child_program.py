"""A child as a real process: boot, TERM, KILL, a parent that dies."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chokaq.lifecycle.states import JobStatus
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import JobView
from chokaq.worker.status import ExitCode
from tests.support.jobs import new_job
from tests.support.polling import wait_until

PARENT = Path(__file__).parent / "programs" / "parent.py"
ROOT = Path(__file__).parents[2]
APP = "tests.worker.programs.jobs_app:app"

pytestmark = pytest.mark.processes


class Program:
    """The parent with its one child."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder / 'jobs.db'}"
        self.session: Session | None = None
        self.process: subprocess.Popen[str] | None = None
        self.pid = 0

    def install(self) -> None:
        store = open_store(DatabaseSettings(url=self.url))
        store.apply_schema()
        self.session = store.session()

    def start(self, app: str = APP, grace: float = 30.0, url: str | None = None) -> "Program":
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CHOKAQ_TEST_FOLDER": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(PARENT), url or self.url, app, str(grace)],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = int(self.line())
        return self

    def line(self) -> str:
        """The next line the program prints."""
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def until(self, text: str) -> None:
        """Read on to a line."""
        while (line := self.line()) != text:
            assert line, f"the program ended before it said {text!r}: {self.errors()}"

    def errors(self) -> str:
        assert self.process is not None
        return self.process.communicate(timeout=30)[1]

    def ended(self) -> int:
        """The child's exit code."""
        while (line := self.line()) and not line.startswith("exit"):
            pass
        return int(line.split()[1])

    def enqueue(self, name: str, wait: str = "") -> str:
        job = new_job(queue="notes", type_key="note.v1", payload=f'{{"name":"{name}","wait":"{wait}"}}')
        assert self.session is not None
        self.session.enqueue_jobs([job])
        return job.id

    def view(self, job: str) -> JobView:
        assert self.session is not None
        view = self.session.get_job(job)
        assert view is not None
        return view

    def appears(self, name: str) -> None:
        wait_until((self.folder / name).exists, name)

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.communicate(timeout=30)
        # The child follows its parent by PDEATHSIG; one that a test has stuck on purpose is ended here.
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    program.install()
    yield program
    program.close()


def test_term_drains_a_child_that_has_worked(program: Program) -> None:
    job = program.enqueue("one")
    program.start().until("ready")
    program.appears("one.done")
    os.kill(program.pid, signal.SIGTERM)
    program.until("draining")
    assert program.ended() == ExitCode.DONE
    assert program.view(job).status is JobStatus.SUCCEEDED


def test_threads_that_never_end_do_not_keep_a_drained_child(program: Program) -> None:
    job = program.enqueue("one", "threads")
    program.start().until("ready")
    program.appears("one.done")
    os.kill(program.pid, signal.SIGTERM)
    assert program.ended() == ExitCode.DONE
    assert program.view(job).status is JobStatus.SUCCEEDED


def test_signals_meant_for_the_supervisor_do_not_disturb_a_child(program: Program) -> None:
    program.start().until("ready")
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
        os.kill(program.pid, number)
    job = program.enqueue("two")
    program.appears("two.done")
    os.kill(program.pid, signal.SIGINT)
    assert program.ended() == ExitCode.DONE
    assert program.view(job).status is JobStatus.SUCCEEDED


def test_a_running_job_is_handed_back_before_the_grace_ends(program: Program) -> None:
    job = program.enqueue("long", "forever")
    program.start(grace=5.5).until("ready")
    program.appears("long.began")
    os.kill(program.pid, signal.SIGTERM)
    os.kill(program.pid, signal.SIGTERM)
    assert program.ended() == ExitCode.DONE
    view = program.view(job)
    assert (view.status, view.attempt_count) == (JobStatus.PENDING, 0)


def test_c10_a_killed_child_leaves_its_job_under_its_lease(program: Program) -> None:
    job = program.enqueue("killed", "forever")
    program.start().until("ready")
    program.appears("killed.began")
    os.kill(program.pid, signal.SIGKILL)
    assert program.ended() == -signal.SIGKILL
    assert program.view(job).status is JobStatus.PROCESSING


def test_a_child_whose_parent_dies_hands_its_jobs_back_and_ends(program: Program) -> None:
    job = program.enqueue("orphan", "forever")
    program.start(grace=5.0).until("ready")
    program.appears("orphan.began")
    assert program.process is not None
    program.process.kill()
    wait_until(lambda: program.view(job).status is JobStatus.PENDING, "handed back")
    wait_until(lambda: not alive(program.pid), "ended")
    assert program.view(job).attempt_count == 0


def test_an_orphan_with_a_stuck_handler_ends_all_the_same(program: Program) -> None:
    job = program.enqueue("stuck", "stuck")
    program.start(grace=3.0).until("ready")
    program.appears("stuck.began")
    assert program.process is not None
    program.process.kill()
    wait_until(lambda: not alive(program.pid), "ended")
    view = program.view(job)
    assert (view.status, view.attempt_count) == (JobStatus.PENDING, 0)


@pytest.mark.parametrize(
    ("app", "words"),
    [
        ("nowhere.at_all:app", "there is no module nowhere"),
        ("tests.worker.programs.jobs_app:missing", "no attribute 'missing'"),
    ],
)
def test_an_application_that_cannot_be_imported_is_one_clear_line(program: Program, app: str, words: str) -> None:
    program.start(app)
    assert program.ended() == ExitCode.BOOT_FAILED
    (line,) = program.errors().splitlines()
    assert line.startswith("chokaq: notes #0: ")
    assert words in line


def test_a_database_that_cannot_be_used_is_one_clear_line(program: Program, tmp_path: Path) -> None:
    program.start(url=f"sqlite:///{tmp_path / 'no' / 'such' / 'folder' / 'x.db'}")
    assert program.ended() == ExitCode.BOOT_FAILED
    (line,) = program.errors().splitlines()
    assert line.startswith("chokaq: notes #0: ")


def test_a_database_that_belongs_to_something_else_is_one_clear_line(program: Program, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as other:
        other.execute("CREATE TABLE customers (id)")
    program.start(url=f"sqlite:///{tmp_path / 'theirs.db'}")
    assert program.ended() == ExitCode.BOOT_FAILED
    (line,) = program.errors().splitlines()
    assert "schema" in line


def alive(pid: int) -> bool:
    """Whether a process exists that has not ended (a zombie nobody reaps has)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")
