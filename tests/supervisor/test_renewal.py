"""HUP and USR2 ask the application anew, and the supervisor does not wait for its answer."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from .conftest import Start
from .harness import FakeProgram, alive, wait_until

pytestmark = pytest.mark.processes
ONE = "queues: {alpha: {}}\nsupervisor: {shutdown_grace: 5s, respawn_min: 50ms, respawn_max: 200ms}\n"
GATED = """
import os, time
open("asked", "w").write(str(os.getpid()))
while not os.path.exists("gate"):
    time.sleep(0.02)
"""


def asked(program: FakeProgram) -> int:
    """The pid of the process that imports a gated application, once it has come to the gate."""
    note = program.folder / "asked"
    wait_until(lambda: note.exists() and note.read_text() != "", "the application is being imported")
    pid = int(note.read_text())
    note.unlink()
    return pid


@pytest.mark.parametrize(("number", "done"), [(signal.SIGHUP, "reloaded"), (signal.SIGUSR2, "replacement_started")])
def test_the_supervisor_goes_on_while_the_application_is_described(
    start: Start, tmp_path: Path, number: signal.Signals, done: str
) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.write_application(GATED)
    program.send(number)
    asked(program)
    os.kill(program.events("child_ready")[0]["pid"], signal.SIGKILL)
    program.wait("child_ready", 2)
    assert not program.events(done)
    (tmp_path / "gate").touch()
    program.wait(done)
    assert program.end() == 0


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "import no_such_package",
            "importing fake_shop failed: ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ("import os; os._exit(9)", "importing fake_shop:app ended the process with exit code 9"),
        ("import os; os.kill(os.getpid(), 11)", "importing fake_shop:app ended the process with signal 11"),
        ("import time; time.sleep(3600)", "importing fake_shop:app took longer than 1 s"),
    ],
)
def test_a_broken_application_is_refused_with_the_reason_and_nothing_changes(
    start: Start, code: str, problem: str
) -> None:
    slow = "sleep" in code
    program = start(ONE, environ={"IMPORT_SECONDS": "1" if slow else "60"})
    program.wait("supervisor_ready")
    program.write_application(code)
    program.configure(ONE.replace("alpha: {}", "alpha: {max_workers: 3}"))
    program.send(signal.SIGHUP)
    [refused] = program.wait("reload_refused")
    assert problem in refused["problem"]
    program.send(signal.SIGUSR2)
    [refused] = program.wait("restart_refused")
    assert problem in refused["problem"]
    assert not program.events("drain_started")
    if not slow:
        program.write_application()
        program.send(signal.SIGHUP)
        [reloaded] = program.wait("reloaded")
        assert reloaded["replaced"] == ["alpha#0"]
    assert program.end() == 0


def test_what_is_asked_for_meanwhile_is_carried_out_with_the_file_of_the_last_signal(
    start: Start, tmp_path: Path
) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.write_application(GATED)
    program.configure(ONE.replace("alpha: {}", "alpha: {}, beta: {}"))
    program.send(signal.SIGHUP)
    first = asked(program)
    program.configure(ONE.replace("alpha: {}", "alpha: {}, gamma: {}"))
    program.send(signal.SIGUSR2)
    program.send(signal.SIGHUP)
    program.wait("signal", 2, name="SIGHUP")
    (tmp_path / "gate").touch()
    [reloaded] = program.wait("reloaded")
    assert reloaded["opened"] == ["gamma"]
    assert not alive(first)
    program.wait("drain_started", reason="rolling_restart")
    assert program.end() == 0


def test_a_restart_and_an_added_process_do_not_take_back_a_reload_that_stands_in_the_line(start: Start) -> None:
    program = start(ONE.replace("alpha: {}", "alpha: {}, beta: {}"), alpha={"term": "ignore"})
    program.wait("supervisor_ready")
    program.configure(ONE.replace("alpha: {}", "alpha: {max_workers: 3}, beta: {max_workers: 4}"))
    program.send(signal.SIGHUP)
    # The line stands still while the first one that was replaced does not end.
    program.wait("drain_started", child="alpha#0")
    program.script("beta", running=[["B" * 26, 1, 1e6]])
    program.wait("child_ready", 2, queue="alpha")
    program.send(signal.SIGUSR2)
    program.wait("restarting")
    program.send(signal.SIGTTIN)
    program.wait("process_added")
    program.script("alpha")
    program.script("beta")
    program.wait("child_died", 3)
    # A reload compares with what the children run with.
    program.send(signal.SIGHUP)
    assert program.wait("reloaded", 2)[1]["replaced"] == []
    assert program.end() == 0


def test_a_broken_file_does_not_keep_a_restart_from_being_carried_out(start: Start, tmp_path: Path) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.write_application(GATED)
    program.send(signal.SIGUSR2)
    asked(program)
    program.configure("queues: {alpha: {colour: red}}\n")
    program.send(signal.SIGHUP)
    program.wait("reload_refused")
    (tmp_path / "gate").touch()
    program.wait("drain_started", reason="rolling_restart")
    assert program.end() == 0


def test_policies_in_code_reach_maintenance_and_restart_no_child(start: Start) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.wait("maintenance_ready")
    program.write_application('app.job("mail.v1", queue="alpha", on_crash="retry")(dict)')
    program.send(signal.SIGHUP)
    [reloaded] = program.wait("reloaded")
    assert reloaded["replaced"] == []
    program.wait("maintenance_ready", 2)
    known = program.control / "registered.json"
    wait_until(lambda: msgspec.json.decode(known.read_bytes()) == {"mail.v1": {"on_crash": "retry"}}, "known there")
    assert program.end() == 0


def test_a_shutdown_does_not_wait_for_an_application_that_is_being_described(start: Start) -> None:
    program = start(ONE)
    program.wait("supervisor_ready")
    program.write_application(GATED)
    program.send(signal.SIGHUP)
    pid = asked(program)
    assert program.end() == 0
    wait_until(lambda: not alive(pid), "it is ended")
