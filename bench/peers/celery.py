"""celery on Redis: its default pool of forked processes, no result backend, acknowledging early as it does by default."""

import celery as library
import redis

from bench.peers.kit import Producer, Setup, redis_url
from bench.record import payload, work

DISTRIBUTION = "celery"
RECOVERY = "what a killed process ran is lost by design; what it had only reserved returns after an hour"
app = library.Celery("bench", broker=redis_url())
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
_WORKER = ["celery", "-A", "bench.peers.celery", "worker", "--loglevel", "WARNING", "--concurrency"]
SETUPS = {"1p": Setup([[*_WORKER, "1"]], 6_000), "2p": Setup([[*_WORKER, "2"]], 8_000)}


@app.task(name="noop")
def noop(number: int, body: str) -> None:
    """The job."""
    work(number)


def reset(_setup: str) -> None:
    """An empty server: it is the bench's own."""
    redis.Redis.from_url(redis_url()).flushall()


def producer() -> Producer:
    """One shared producer, which spares a connection per call."""
    shared = app.amqp.producer_pool.acquire(block=True)

    def one(number: int) -> None:
        noop.apply_async(kwargs=payload(number), producer=shared)

    return Producer(one, None, shared.release)


def unfinished() -> int:
    """Waiting, or not acknowledged yet."""
    server = redis.Redis.from_url(redis_url())
    return int(server.llen("celery")) + int(server.hlen("unacked"))
