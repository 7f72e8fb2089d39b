"""chokaq itself, by the same method: defaults, and as many handlers at once as the peers are given.

The store comes from the environment: the bench writes the worker's YAML into the folder of this system.
"""

import sys
from collections.abc import Sequence

from bench.application import QUEUE, Noop, app
from bench.peers.kit import Producer, Setup, place
from bench.target import Target, open_target
from chokaq.config.load import load_settings
from chokaq.store.open import open_store
from chokaq.store.records import JobFilter

DISTRIBUTION = "chokaq"
RECOVERY = "a supervisor releases a dead child's jobs at once; when it dies as well, the leases run out (10 min)"


def _worker(setup: str) -> list[list[str]]:
    return [[sys.executable, "-m", "chokaq", "worker", "--config", str(place(f"{setup}.yaml"))]]


SETUPS = {
    "1p": Setup(_worker("1p"), 40_000),
    "2p": Setup(_worker("2p"), 60_000),
    "1p-100": Setup(_worker("1p-100"), 40_000),
    "2p-100": Setup(_worker("2p-100"), 60_000),
}
"""Children, and `max_workers` where it is not the default."""
OPTIONS: dict[str, dict[str, object]] = {
    "1p": {},
    "2p": {"processes": 2},
    "1p-100": {"max_workers": 100},
    "2p-100": {"processes": 2, "max_workers": 100},
}


def target() -> Target:
    """The database named in the folder."""
    kind, database = place("target").read_text().split("\n")[:2]
    return open_target(kind, database or None, place(""))


def reset(setup: str) -> None:
    """Empty store, and the YAML of this set-up."""
    import yaml

    found = target()
    found.prepare()
    document = {
        "app": "bench.application:app",
        "database": {"url": found.settings.url, "schema": found.settings.schema},
        "log_level": "warning",
        "queues": {QUEUE: OPTIONS[setup] or None},
    }
    path = place(f"{setup}.yaml")
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    found.close()


def producer() -> Producer:
    """Through the application, synchronously."""
    settings = load_settings(place("1p.yaml") if place("1p.yaml").exists() else next(place("").glob("*.yaml")))
    app.bind(settings)

    def many(numbers: Sequence[int]) -> None:
        app.enqueue_many_sync([Noop(number) for number in numbers])

    return Producer(lambda number: app.enqueue_sync(Noop(number)), many, app.close)


def unfinished() -> int:
    """Jobs in Hot; exact up to the size of a page."""
    session = open_store(target().settings).session()
    try:
        return len(session.list_jobs(JobFilter(queue=QUEUE), 500).jobs)
    finally:
        session.close()
