"""The commands as real programs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Cli

HEAVY = ("pyodbc", "uvloop", "rich.table", "sqlite3", "chokaq.supervisor", "chokaq.worker.child")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, contextlib\n"
        "from chokaq.cli import main\n"
        "sys.argv = ['chokaq', '--version']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)


def test_json_is_all_there_is_on_stdout(program: Cli) -> None:
    program("schema", "apply")
    enqueued = json.loads(program("enqueue", "a.b", "{}", "-q", "q", "--json").out)
    ran = program("status", "--json", code=1)
    assert json.loads(ran.out)["queues"][0]["queue"]["name"] == "q"
    assert ran.err == ""
    assert enqueued["answer"]["status"] == "Pending"


def test_bad_configuration_ends_with_3_and_no_traceback(program: Cli, folder: Path) -> None:
    (folder / "chokaq.yaml").write_text("database: mssql://sa:${file:secret}@h\n")
    (folder / "secret").write_text("hunter2")
    ran = program("status", code=3)
    assert ran.err.startswith(f"chokaq: {folder}/chokaq.yaml: database.url: names no database")
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("queues", ["", "queues: {emails: {}}\n"])
def test_a_handler_import_error_stops_the_worker_with_one_line(program: Cli, folder: Path, queues: str) -> None:
    (folder / "shop.py").write_text("import nothing_here\n")
    (folder / "chokaq.yaml").write_text("app: shop:app\n" + queues)
    ran = program("worker", code=78)
    assert len(ran.err.splitlines()) == 1
    assert "importing shop failed: ModuleNotFoundError: No module named 'nothing_here'" in ran.err


def test_watch_shows_one_line_per_look_until_it_is_interrupted(program: Cli, folder: Path) -> None:
    program("schema", "apply")
    watching = subprocess.Popen(
        [sys.executable, "-m", "chokaq", "status", "--watch", "--interval", "0.1", "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    looks = [json.loads(watching.stdout.readline()) for _ in range(3)]
    watching.send_signal(signal.SIGINT)
    rest, err = watching.communicate(timeout=30)
    assert all(look["problems"] == [] for look in looks)
    assert all(json.loads(line) for line in rest.splitlines())
    assert (watching.returncode, err) == (0, "")


def test_a_reader_that_leaves_early_is_no_crash(program: Cli, folder: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m chokaq config --example | head -1",
        shell=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(program: Cli, shell: str) -> None:
    ran = program("--show-completion", shell, code=0)
    assert "chokaq" in ran.out or "COMPLETE" in ran.out
