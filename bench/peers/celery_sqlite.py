"""celery on kombu's SQLAlchemy transport and a SQLite file: celery without a server (experimental, says its documentation)."""

import sqlite3
from contextlib import closing

import celery as library

from bench.peers.kit import Producer, Setup, place
from bench.record import payload, work

DISTRIBUTION = "celery"
RECOVERY = "none: a message counts as taken once it was fetched"
_FILE = place("celery.db")
app = library.Celery("bench", broker=f"sqla+sqlite:///{_FILE}")
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
_WORKER = ["celery", "-A", "bench.peers.celery_sqlite", "worker", "--loglevel", "WARNING", "--concurrency"]
SETUPS = {"1p": Setup([[*_WORKER, "1"]], 2_000), "2p": Setup([[*_WORKER, "2"]], 2_000)}


@app.task(name="noop")
def noop(number: int, body: str) -> None:
    """The job."""
    work(number)


def reset(_setup: str) -> None:
    """Its tables, empty."""
    with app.connection_for_write() as connection:
        connection.default_channel.queue_declare("celery")
    with closing(sqlite3.connect(_FILE)) as database, database:
        database.execute("DELETE FROM kombu_message")


def producer() -> Producer:
    """One shared producer, which spares a connection per call."""
    shared = app.amqp.producer_pool.acquire(block=True)

    def one(number: int) -> None:
        noop.apply_async(kwargs=payload(number), producer=shared)

    return Producer(one, None, shared.release)


def unfinished() -> int:
    """Messages that no worker has taken."""
    with closing(sqlite3.connect(_FILE)) as database:
        return int(database.execute("SELECT count(*) FROM kombu_message WHERE visible = 1").fetchone()[0])
