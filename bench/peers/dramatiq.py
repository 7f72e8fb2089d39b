"""dramatiq on Redis: processes with fifty threads each."""

from typing import Any

import dramatiq as library
import redis
from dramatiq.brokers.redis import RedisBroker

from bench.peers.kit import Producer, Setup, nothing, redis_url
from bench.record import payload, work

DISTRIBUTION = "dramatiq"
RECOVERY = (
    "messages of a worker without a heartbeat for 60 s go back to their queue, at some later command of another worker"
)
library.set_broker(RedisBroker(url=redis_url()))
_WORKER = ["dramatiq", "bench.peers.dramatiq", "--threads", "50", "--processes"]
SETUPS = {"1p": Setup([[*_WORKER, "1"]], 25_000), "2p": Setup([[*_WORKER, "2"]], 30_000)}


@library.actor(actor_name="noop")
def noop(number: int, body: str) -> None:
    """The job."""
    work(number)


def reset(_setup: str) -> None:
    """An empty server: it is the bench's own."""
    _redis().flushall()


def producer() -> Producer:
    """One message a call: there is no other way."""
    arguments: Any = payload
    return Producer(lambda number: noop.send(**arguments(number)), None, nothing)


def unfinished() -> int:
    """Waiting, or not acknowledged yet."""
    server = _redis()
    unacknowledged = [key for key in server.keys("dramatiq:__acks__*") if server.type(key) == b"set"]
    return int(server.llen("dramatiq:default")) + sum(int(server.scard(key)) for key in unacknowledged)


def _redis() -> Any:
    return redis.Redis.from_url(redis_url())
