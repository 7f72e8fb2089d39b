"""taskiq on Redis streams, its broker with acknowledgements: one event loop per process, fifty jobs at once."""

from typing import Any

import redis
from taskiq_redis import RedisStreamBroker

from bench.peers.kit import Loop, Producer, Setup, redis_url
from bench.record import payload, work_async

DISTRIBUTION = "taskiq"
RECOVERY = "messages unacknowledged for 10 min are claimed by another consumer"
# From the beginning of the stream: jobs are sent before the first worker has started.
broker = RedisStreamBroker(redis_url(), consumer_id="0")
_WORKER = [
    "taskiq",
    "worker",
    "bench.peers.taskiq:broker",
    "--log-level",
    "WARNING",
    "--max-async-tasks",
    "50",
    "--workers",
]
SETUPS = {"1p": Setup([[*_WORKER, "1"]], 20_000), "2p": Setup([[*_WORKER, "2"]], 25_000)}


@broker.task(task_name="noop")
async def noop(number: int, body: str) -> None:
    """The job."""
    await work_async(number)


def reset(_setup: str) -> None:
    """An empty server: it is the bench's own."""
    _redis().flushall()


def producer() -> Producer:
    """One message a call: there is no other way."""
    loop = Loop()
    loop(broker.startup())

    def close() -> None:
        loop(broker.shutdown())
        loop.close()

    arguments: Any = payload
    return Producer(lambda number: loop(noop.kiq(**arguments(number))), None, close)


def unfinished() -> int:
    """Not delivered, or not acknowledged."""
    server = _redis()
    if not server.exists("taskiq"):
        return 0
    return sum(int(group["pending"]) + int(group["lag"] or 0) for group in server.xinfo_groups("taskiq"))


def _redis() -> Any:
    return redis.Redis.from_url(redis_url())
