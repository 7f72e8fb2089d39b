"""A web application that enqueues, as one would write it: gunicorn loads it before it forks its workers."""

import os
from typing import Any

import msgspec
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from chokaq import ChokaQ
from chokaq.config.settings import Settings
from chokaq.observe.metrics import instrument
from chokaq.store.options import DatabaseSettings

app = ChokaQ(Settings(database=DatabaseSettings(url=os.environ["SHOP_DATABASE"])))
instrument(app)


@app.job("email.send.v1", queue="emails")
class SendEmail(msgspec.Struct):
    """A contract."""

    to: str


web = FastAPI()


@web.post("/orders/{order}")
async def order(order: str) -> dict[str, Any]:
    """One job per order, however often it is sent."""
    answer = await app.enqueue(SendEmail(order), idempotency_key=order)
    return {"id": answer.id, "created": answer.created, "pid": os.getpid()}


@web.post("/refused")
async def refused() -> dict[str, Any]:
    """What the application does not know."""
    try:
        await app.enqueue("email.unknown.v1", {})
    except ValueError as error:
        return {"error": type(error).__name__, "pid": os.getpid()}
    return {}


@web.get("/metrics")
def metrics() -> Response:
    """The figures of all workers, as prometheus_client documents it."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
