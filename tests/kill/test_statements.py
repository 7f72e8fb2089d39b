"""SIGKILL between any two statements of every embedded operation (C10): all or nothing, and a repeat completes it."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import DeathNotice
from tests.kill.scenarios import JOBS, POLICIES, QUEUE, SCENARIOS, WORKER_ID, resume, ulid
from tests.kill.snapshots import TABLES, snapshot, without_repeats

PROGRAM = Path(__file__).parent / "programs" / "doomed.py"
MOST_STATEMENTS = 60


def doom(file: Path, scenario: str, *mode: str) -> int:
    """Run the program to its end; its exit code (negative: the signal that killed it)."""
    finished = subprocess.run(
        [sys.executable, str(PROGRAM), f"sqlite:///{file}", "chokaq", scenario, *mode],
        input=b"go\ngo\n", capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert finished.returncode in (0, -signal.SIGKILL), finished.stderr.decode()
    return finished.returncode


def picture(file: Path) -> dict[str, Any]:
    """All tables of the file, masked."""
    connection = sqlite3.connect(file)
    connection.row_factory = sqlite3.Row
    try:
        return snapshot(
            {table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in TABLES}
        )
    finally:
        connection.close()


def copy(source: Path, target: Path) -> Path:
    """A copy of a database nobody has open, with its write-ahead log."""
    for suffix in ("", "-wal", "-shm"):
        part = source.with_name(source.name + suffix)
        if part.exists():
            shutil.copy(part, target.with_name(target.name + suffix))
    return target


def repeat_call(file: Path, name: str) -> None:
    """What the caller does after an unknown outcome: the same call again."""
    session = open_store(DatabaseSettings(url=f"sqlite:///{file}")).session()
    SCENARIOS[name].call(session, resume(session))
    session.close()


def bury_worker(file: Path) -> set[Any]:
    """Release the dead worker as maintenance does; the states its jobs end in."""
    session = open_store(DatabaseSettings(url=f"sqlite:///{file}")).session()
    notice = DeathNotice(worker_id=WORKER_ID, queue=QUEUE, cause="crash", signal=9)
    while not session.release_worker(resume(session).rescuer, notice, POLICIES).done:
        pass
    states = set(session.get_statuses([ulid(number) for number in range(JOBS)]))
    session.close()
    return states - {None}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_between_any_two_statements_leaves_all_or_nothing_and_a_repeat_completes_it(
    name: str, tmp_path: Path
) -> None:
    prepared = tmp_path / "prepared.db"
    assert doom(prepared, name, "prepare") == 0
    undisturbed = copy(prepared, tmp_path / "undisturbed.db")
    assert doom(undisturbed, name, "call") == 0
    before, after = picture(prepared), picture(undisturbed)
    for statement in range(1, MOST_STATEMENTS):
        victim = copy(prepared, tmp_path / f"{statement}.db")
        if doom(victim, name, "statement", str(statement)) == 0:
            assert picture(victim) == after
            break
        left = picture(victim)
        committed = left != before
        assert left == (after if committed else before), f"killed before statement {statement}"
        grave = copy(victim, tmp_path / f"{statement}-grave.db")
        assert bury_worker(grave) == SCENARIOS[name].after_crash[committed], f"killed before statement {statement}"
        repeat_call(victim, name)
        assert without_repeats(picture(victim), name) == without_repeats(after, name), (
            f"killed before statement {statement}"
        )
    else:
        pytest.fail(f"{name} ran more than {MOST_STATEMENTS} statements")
    assert statement > 1, "the call ran no statement at all"
