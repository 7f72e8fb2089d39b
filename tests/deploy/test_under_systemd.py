"""The shipped units under a real systemd: start, reload, watchdog, stop, what a failure leads to, all of it in the sandbox."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.polling import wait_until

from .machine import Machine, hindrance
from .units import PROGRAM, Unit, units

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(hindrance() is not None, reason=hindrance() or ""),
]
WATCHDOG = 5
"""Seconds, in the place of the unit's 30."""
LOCAL = "CHOKAQ_DATABASE_URL=sqlite:///%S/{folder}/chokaq.db CHOKAQ_PRODUCTION=false"
"""No SQL Server stands behind these units: a file in their state folder does."""

LOOK = """
from http.client import HTTPConnection
asking = HTTPConnection("127.0.0.1", 8420, timeout=20)
asking.request("GET", "/", headers={"X-Forwarded-User": "anna"})
print(asking.getresponse().status)
"""
"""As the proxy in front of The Deck."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One boot for all tests."""
    found = Machine(tmp_path_factory.mktemp("machine"))
    found.etc.chmod(0o755)
    for unit in units():
        shutil.copy(unit.config, found.etc)
        for credential in unit.service["LoadCredential"]:
            file = found.etc / "credentials" / Path(credential.partition(":")[2]).name
            file.parent.mkdir(mode=0o700, exist_ok=True)
            file.write_text("a-credential-of-thirty-two-characters-or-more\n")
            file.chmod(0o600)
    (found.etc / "mail.yaml").write_text("app: shop.jobs:app\nlog_format: json\nqueues: {emails: {}}\n")
    drop_in(found, "chokaq", f"WatchdogSec={WATCHDOG}s\nTimeoutAbortSec={WATCHDOG}s\nRestartSec=200ms\n")
    drop_in(found, "chokaq@", "")
    drop_in(found, "chokaq-deck", "", folder="chokaq-deck")
    drop_in(found, "chokaq-schema", "", folder="chokaq-schema")
    try:
        found.boot()
        yield found
    finally:
        found.halt()


def drop_in(machine: Machine, name: str, text: str, folder: str = "chokaq") -> None:
    """What `systemctl edit` would add to a unit."""
    path = machine.drop_ins / f"{name}.service.d"
    path.mkdir()
    (path / "test.conf").write_text(f"[Service]\nEnvironment={LOCAL.format(folder=folder)}\n{text}")


@pytest.fixture
def worker(machine: Machine) -> Iterator[str]:
    """chokaq.service, started and ready."""
    began = machine.run("systemctl", "start", "chokaq.service")
    assert began.returncode == 0, machine.journal("chokaq.service")
    yield "chokaq.service"
    machine.run("systemctl", "stop", "chokaq.service")
    machine.run("systemctl", "reset-failed", "chokaq.service")


def chokaq(machine: Machine, *arguments: str) -> str:
    """A command of an operator who works as the workers' user, on their file."""
    done = machine.run(
        "runuser", "--user=chokaq", "--", PROGRAM, *arguments,
        env={"CHOKAQ_DATABASE_URL": "sqlite:////var/lib/chokaq/chokaq.db", "XDG_RUNTIME_DIR": "/run/chokaq"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def main_pid(machine: Machine, unit: str) -> str:
    """Of its supervisor."""
    return machine.show(unit, "MainPID")["MainPID"]


def test_start_returns_when_every_queue_has_a_child(machine: Machine, worker: str) -> None:
    told = machine.show(worker, "ActiveState", "SubState", "StatusText", "NotifyAccess", "Result")
    assert told.pop("StatusText").startswith("ready: emails 1/1, messages ")
    assert told == {"ActiveState": "active", "SubState": "running", "NotifyAccess": "main", "Result": "success"}
    # The second process of a queue may be a moment late.
    status = {"StatusText": "ready: emails 1/1, messages 2/2, reports 1/1"}
    wait_until(lambda: machine.show(worker, "StatusText") == status, "both processes of messages")
    assert chokaq(machine, "health", "--live", "--port", "9090").startswith("healthy")


def test_a_handler_works_inside_the_sandbox(machine: Machine, worker: str) -> None:
    chokaq(machine, "enqueue", "report.excel.create.v1", '{"subject": "FR"}', "--queue", "reports")

    def reports() -> list[str]:
        return machine.run("find", "/var/lib/chokaq/reports", "-name", "*.xlsx").stdout.split()

    wait_until(lambda: len(reports()) == 1, "a report in the state folder")
    assert machine.run("stat", "--format=%U %a", *reports()).stdout == "chokaq 600\n"
    # The doorbell's folder is there for programs of this user, and for nobody else.
    assert machine.run("stat", "--format=%U %a", "/run/chokaq").stdout == "chokaq 700\n"
    status = machine.run("cat", f"/proc/{main_pid(machine, worker)}/status").stdout
    assert "NoNewPrivs:\t1" in status
    assert "CapBnd:\t0000000000000000" in status
    assert "Seccomp:\t2" in status


def test_reload_ends_when_the_new_settings_are_in_force(machine: Machine, worker: str) -> None:
    before = main_pid(machine, worker)
    config = machine.etc / "chokaq.yaml"
    text = config.read_text()
    config.write_text(text.replace("processes: 2", "processes: 1"))
    try:
        assert machine.run("systemctl", "reload", worker).returncode == 0
        wait_until(
            lambda: (
                machine.show(worker, "SubState", "StatusText")
                == {"SubState": "running", "StatusText": "ready: emails 1/1, messages 1/1, reports 1/1"}
            ),
            "the end of the reload",
        )
    finally:
        config.write_text(text)
    assert main_pid(machine, worker) == before


def test_a_supervisor_that_stands_still_is_killed_and_started_anew(machine: Machine, worker: str) -> None:
    before = main_pid(machine, worker)
    machine.run("kill", "-STOP", before)
    wait_until(
        lambda: machine.state(worker) == "active" and main_pid(machine, worker) not in {before, "0"}, "another one", 60
    )
    assert machine.show(worker, "NRestarts") == {"NRestarts": "1"}
    assert "Watchdog timeout" in machine.run("journalctl", "--no-pager", "--unit", worker).stdout
    # Nothing of the first one is left.
    assert machine.run("ps", "-o", "pid=", "-p", before).stdout == ""


def test_a_child_that_is_killed_is_the_supervisors_to_replace(machine: Machine, worker: str) -> None:
    supervisor = main_pid(machine, worker)
    [child, *_] = machine.run("pgrep", "--parent", supervisor, "--full", "emails").stdout.split()
    machine.run("kill", "-KILL", child)

    def replaced() -> bool:
        found = machine.run("pgrep", "--parent", supervisor, "--full", "emails").stdout.split()
        return (
            bool(found) and found != [child] and "ready: emails 1/1" in machine.show(worker, "StatusText")["StatusText"]
        )

    wait_until(replaced, "another child")
    assert main_pid(machine, worker) == supervisor


def test_stop_drains_and_leaves_nothing(machine: Machine, worker: str) -> None:
    assert machine.run("systemctl", "stop", worker).returncode == 0
    told = machine.show(worker, "ActiveState", "Result", "ExecMainStatus")
    assert told == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert machine.run("pgrep", "--uid", "chokaq").stdout == ""
    assert "drain" in machine.journal(worker)


@pytest.mark.parametrize(
    ("variable", "code", "word"),
    [("CHOKAQ_APP=nowhere:app", "78", "nowhere"), ("CHOKAQ_LOG_LEVEL=loud", "3", "CHOKAQ_LOG_LEVEL")],
)
def test_what_no_restart_mends_is_not_restarted(machine: Machine, variable: str, code: str, word: str) -> None:
    machine.run("systemctl", "set-environment", variable)
    try:
        assert machine.run("systemctl", "start", "chokaq.service").returncode != 0
        assert machine.show("chokaq.service", "ActiveState", "ExecMainStatus", "NRestarts") == {
            "ActiveState": "failed", "ExecMainStatus": code, "NRestarts": "0",
        }  # fmt: skip
        assert word in machine.journal("chokaq.service")
    finally:
        machine.run("systemctl", "unset-environment", variable.partition("=")[0])
        machine.run("systemctl", "reset-failed", "chokaq.service")


def test_a_missing_credential_is_told_and_not_tried_again(machine: Machine) -> None:
    credential = machine.etc / "credentials/database-password"
    text = credential.read_text()
    credential.unlink()
    try:
        assert machine.run("systemctl", "start", "chokaq.service").returncode != 0
        assert machine.show("chokaq.service", "ActiveState", "ExecMainStatus", "NRestarts") == {
            "ActiveState": "failed", "ExecMainStatus": "243", "NRestarts": "0",
        }  # fmt: skip
    finally:
        credential.write_text(text)
        machine.run("systemctl", "reset-failed", "chokaq.service")


def test_the_template_runs_a_configuration_by_its_name(machine: Machine) -> None:
    assert machine.run("systemctl", "start", "chokaq@mail.service").returncode == 0, machine.journal("chokaq@mail")
    assert machine.show("chokaq@mail.service", "StatusText") == {"StatusText": "ready: emails 1/1"}
    assert machine.run("systemctl", "stop", "chokaq@mail.service").returncode == 0
    assert machine.show("chokaq@mail.service", "Result", "ExecMainStatus") == {
        "Result": "success",
        "ExecMainStatus": "0",
    }


def test_the_schema_unit_runs_once_and_succeeds(machine: Machine) -> None:
    assert machine.run("systemctl", "start", "chokaq-schema.service").returncode == 0, machine.journal("chokaq-schema")
    assert "is at version" in machine.journal("chokaq-schema.service")
    assert machine.show("chokaq-schema.service", "ActiveState", "Result") == {
        "ActiveState": "inactive",
        "Result": "success",
    }


def test_the_deck_answers_as_a_user_of_its_own(machine: Machine) -> None:
    unit = "chokaq-deck.service"
    assert machine.run("systemctl", "start", unit).returncode == 0
    wait_until(lambda: "deck_ready" in machine.journal(unit), "The Deck", 60)
    python = Path(PROGRAM).parents[1] / "python"
    told = machine.run(str(python / "bin/python3"), "-c", LOOK, env={"LD_LIBRARY_PATH": str(python / "lib")})
    assert told.stdout == "200\n", told.stderr
    # It cannot read the workers' password, nor they its.
    for credential in ("database-password", "deck-secret"):
        path = f"/run/credentials/{unit}/{credential}"
        assert machine.run("test", "-e", path).returncode == 0
        assert machine.run("runuser", "--user=chokaq", "--", "cat", path).returncode != 0
    assert machine.run("systemctl", "stop", unit).returncode == 0
    assert machine.show(unit, "Result") == {"Result": "success"}


def test_every_unit_was_started_here() -> None:
    started = {"chokaq.service", "chokaq@.service", "chokaq-schema.service", "chokaq-deck.service"}
    assert {unit.name for unit in units()} == started
    assert Unit("chokaq.service").one("Type") == "notify"
