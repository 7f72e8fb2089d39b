"""A FastAPI application under gunicorn, loaded before the workers are forked: one scrape shows what all of them have enqueued."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.polling import wait_until
from tests.support.processes import ROOT

pytestmark = pytest.mark.processes
WORKERS = 2
CONFIG = """
bind = "127.0.0.1:0"
workers = 2
worker_class = "asgi"
preload_app = True
control_socket_disable = True

def child_exit(server, worker):
    from prometheus_client import multiprocess
    multiprocess.mark_process_dead(worker.pid)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[str]:
    """The URL of a served application."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "gunicorn.conf.py").write_text(CONFIG, encoding="utf-8")
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "figures"),
        "SHOP_DATABASE": f"sqlite:///{tmp_path / 'shop.db'}",
    }
    log = tmp_path / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "tests.observe.metrics.programs.shop_web:web"],
            cwd=tmp_path,
            env=environ,
            stdout=out,
            stderr=out,
        )
    try:
        wait_until(lambda: log.read_text().count("Booting worker") == WORKERS, "the workers", 30.0)
        found = re.search(r"Listening at: (http://127\.0\.0\.1:\d+)", log.read_text())
        assert found is not None, log.read_text()
        yield found[1]
    finally:
        server.terminate()
        server.wait(20)


def figures(url: str) -> dict[tuple[str, ...], float]:
    """The samples of chokaq by name and label values, in the order of the labels' names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
        for sample in family.samples
        if sample.name.startswith("chokaq_")
    }


def test_one_scrape_shows_what_all_workers_have_enqueued(shop: str) -> None:
    pids: set[int] = set()
    sent = refused = 0

    def both_worked() -> bool:
        nonlocal sent, refused
        # A new connection each time: the kernel gives it to one worker or the other.
        answer = httpx.post(f"{shop}/orders/{sent}").json()
        again = httpx.post(f"{shop}/orders/{sent}").json()
        assert (answer["created"], again["created"], again["id"]) == (True, False, answer["id"])
        unknown = httpx.post(f"{shop}/refused").json()
        assert unknown["error"] == "UnknownJobType"
        sent, refused = sent + 1, refused + 1
        pids.update((answer["pid"], again["pid"], unknown["pid"]))
        return len(pids) == WORKERS and sent >= 5

    wait_until(both_worked, "work for every worker", 30.0)
    found = figures(shop)
    assert found["chokaq_jobs_enqueued_total", "emails", "email.send.v1"] == sent
    assert found["chokaq_jobs_duplicates_total", "emails", "email.send.v1"] == sent
    assert found["chokaq_jobs_refused_total", "chokaq.jobs.errors.UnknownJobType", "unknown", "unknown"] == refused
    assert found["chokaq_enqueue_seconds_count", "enqueue"] == 2 * sent + refused
    assert found["chokaq_enqueue_seconds_sum", "enqueue"] > 0
