"""`chokaq worker` from a folder with nothing but an application: the first run just works, and SIGTERM drains it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.polling import wait_until

from .conftest import ROOT, Cli

SHOP = """
from chokaq import ChokaQ, JobContext

app = ChokaQ()
app.job("email.send.v1", queue="emails")(dict)
app.job("report.make.v1", queue="reports")(dict)


@app.handler("email.send.v1")
async def send(job: dict, ctx: JobContext) -> None: ...


@app.handler("report.make.v1")
def make(job: dict, ctx: JobContext) -> None: ...
"""


@pytest.mark.processes
def test_a_worker_serves_the_queues_of_its_application_and_a_chosen_database(cli: Cli, folder: Path) -> None:
    (folder / "shop_worked.py").write_text(SHOP)
    (folder / "etc").mkdir()
    (folder / "etc" / "chokaq.yaml").write_text("app: shop_worked:app\nlog_format: json\n")
    common = ("--config", "etc/chokaq.yaml", "--database", "sqlite:///chosen.db")
    jobs = [
        cli("enqueue", key, "{}", "--json", *common).json["answer"]["id"] for key in ("email.send.v1", "report.make.v1")
    ]
    worker = subprocess.Popen(
        [sys.executable, "-m", "chokaq", "worker", *common],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: _succeeded(cli, common) == set(jobs), "both jobs in the archive")
        assert "Nothing is wrong." in cli("status", *common).out
        worker.send_signal(signal.SIGHUP)  # the reload has to find the chosen database again
        later = cli("enqueue", "email.send.v1", "{}", "--json", *common).json["answer"]["id"]
        wait_until(lambda: later in _succeeded(cli, common), "the job after the reload")
    finally:
        worker.terminate()
        _, err = worker.communicate(timeout=60)
    assert worker.returncode == 0, err
    assert not (folder / "etc" / "chokaq.db").exists()


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_application_is_still_being_imported_ends_the_program_with_0(
    folder: Path, number: signal.Signals
) -> None:
    (folder / "slow_shop.py").write_text(
        "import os, time\nopen('asked', 'w').write(str(os.getpid()))\ntime.sleep(3600)\n"
    )
    (folder / "chokaq.yaml").write_text("app: slow_shop:app\n")
    worker = subprocess.Popen(
        [sys.executable, "-m", "chokaq", "worker"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        asked = folder / "asked"
        wait_until(lambda: asked.exists() and asked.read_text() != "", "the application is being imported")
        worker.send_signal(number)
        assert worker.wait(30) == 0
        wait_until(lambda: not Path(f"/proc/{asked.read_text()}").exists(), "nothing is left of it")
    finally:
        worker.kill()
        worker.wait()


def _succeeded(cli: Cli, common: tuple[str, ...]) -> set[str]:
    return {job["id"] for job in cli("jobs", "list", "-p", "archive", "--json", *common).json["jobs"]}
