"""One log line per command of an operator: done, or refused and why. In programs that set up no logging: none."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from chokaq.operations import (
    NotAllowed,
    OperationError,
    Role,
    activate_queue,
    apply_schema,
    by,
    cancel_jobs,
    deactivate_queue,
    drain_worker,
    drop_jobs,
    edit_job,
    force_circuit,
    pause_queue,
    purge_jobs,
    resume_queue,
    resurrect_jobs,
    set_queue,
)
from chokaq.store.errors import StoreUnavailable
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from tests.support.fake_repairs import FakeRepairs
from tests.support.ids import new_id
from tests.support.processes import ROOT

ANNA = by("anna", "PWD=hunter2 is no reason")


def test_what_was_carried_out_is_told_with_actor_target_and_counts(fake: FakeRepairs) -> None:
    one, two = fake.stopped(), fake.stopped()
    with capture_logs() as logs:
        resurrect_jobs(fake.session, [one, two, new_id()], ANNA)
    assert logs == [
        {
            "event": "command_completed",
            "log_level": "info",
            "command": "resurrect",
            "targets": 3,
            "target": one,
            "actor": "anna",
            "why": ANNA.reason,
            "accepted": 2,
            "unknown": 1,
        }
    ]


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("cancel", lambda _: cancel_jobs(SimpleNamespace(cancel_jobs=None), ["x"], ANNA)),
        ("resurrect", lambda session: resurrect_jobs(session, ["x"], ANNA)),
        ("drop", lambda session: drop_jobs(session, [], by("anna"))),
        ("purge", lambda session: purge_jobs(session, ["x"], who=ANNA)),
        ("edit", lambda session: edit_job(session, "x", None, ANNA)),  # type: ignore[arg-type]
        ("drain", lambda session: drain_worker(session, "x", ANNA)),
        ("force_circuit", lambda session: force_circuit(session, "a.v1", "ajar", ANNA)),
        ("pause", lambda session: pause_queue(session, " x", ANNA)),
        ("resume", lambda session: resume_queue(session, " x", ANNA)),
        ("activate", lambda session: activate_queue(session, " x", ANNA)),
        ("deactivate", lambda session: deactivate_queue(session, " x", ANNA)),
        ("set", lambda session: set_queue(session, "x", ANNA)),
    ],
)
def test_what_was_refused_is_told_with_the_reason(
    fake: FakeRepairs, command: str, call: Callable[[object], object]
) -> None:
    with capture_logs() as logs, pytest.raises(OperationError) as caught:
        call(fake.session)
    [line] = logs
    assert (line["event"], line["command"], line["log_level"]) == ("command_rejected", command, "warning")
    assert (line["problem"], line["actor"]) == (str(caught.value), "anna")


def test_a_viewers_attempt_is_the_decks_to_tell(fake: FakeRepairs) -> None:
    with capture_logs() as logs, pytest.raises(NotAllowed):
        purge_jobs(fake.session, [new_id()], by("vera", role=Role.VIEWER))
    assert logs == []


def test_a_schema_is_told_from_its_start_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(DatabaseSettings(url=f"sqlite:///{tmp_path / 'jobs.db'}"))
    with capture_logs() as logs:
        apply_schema(store)
    assert [line["event"] for line in logs] == ["schema_apply_started", "schema_applied"]
    assert "001_pillars" in logs[1]["applied"]

    def refuse(_self: object) -> list[str]:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(store), "apply_schema", refuse)
    with capture_logs() as logs, pytest.raises(StoreUnavailable):
        apply_schema(store)
    assert [(line["event"], line.get("error")) for line in logs] == [
        ("schema_apply_started", None),
        ("schema_apply_failed", "gone"),
    ]


def test_a_first_run_that_makes_its_own_schema_is_told(tmp_path: Path) -> None:
    with capture_logs() as logs:
        open_store(DatabaseSettings(url=f"sqlite:///{tmp_path / 'jobs.db'}")).session().close()
    assert [line["event"] for line in logs] == ["schema_apply_started", "schema_applied"]


def test_commands_answer_in_words_and_write_no_log_lines(tmp_path: Path) -> None:
    (tmp_path / "chokaq.yaml").write_text("database: sqlite:///jobs.db\n")
    for arguments, code in (
        (["schema", "apply"], 0),
        (["queues", "pause", "emails", "--create"], 0),
        (["queues", "pause", "nobody"], 1),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "chokaq", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        assert not any(word in done.stdout + done.stderr for word in ("command_", "schema_apply", "event_id"))
