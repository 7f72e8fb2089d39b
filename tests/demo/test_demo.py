"""`chokaq demo` as a user runs it, small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import NewJob
from tests.support.ids import new_id


def demo(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "chokaq", "demo", "--scale", "0.01", "--json", *words],
        cwd=folder, env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


@pytest.mark.processes
def test_the_demo_accounts_for_every_job_though_a_child_is_killed(tmp_path: Path) -> None:
    ended = demo(tmp_path)
    assert ended.returncode == 0, ended.stderr
    verdict = json.loads(ended.stdout.splitlines()[-1])
    assert verdict["lost"] == verdict["unexplained"] == verdict["unfinished"] == 0
    assert verdict["killed_pid"] is not None
    assert {queue: line["enqueued"] for queue, line in verdict["queues"].items()} == {
        "emails": 10, "messages": 500, "reports": 3,
    }  # fmt: skip
    assert verdict["queues"]["emails"]["received"] == verdict["queues"]["emails"]["succeeded"] > 0


def test_the_demo_leaves_a_database_alone_whose_queues_hold_other_jobs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    session = open_store(DatabaseSettings(url=url)).session()
    mine = new_id()
    session.enqueue_jobs([NewJob(id=mine, queue="emails", type_key="email.send.v1", payload="{}")])
    ended = demo(tmp_path, "--database", url)
    assert ended.returncode == 1
    assert "the queue emails" in ended.stderr
    assert "a database of its own" in ended.stderr
    assert session.get_job(mine) is not None
    session.close()
