"""The application whose jobs do nothing: what a `chokaq worker` runs while it is measured."""

import os

import msgspec

from bench import record
from chokaq import ChokaQ, JobContext

QUEUE = "bench"
TYPE = "bench.noop.v1"
CALLS = "BENCH_CALLS"
"""Environment variable: a folder; every process of the worker then counts its store calls there (bench.calls)."""

app = ChokaQ()


@app.job(TYPE, queue=QUEUE)
class Noop(msgspec.Struct):
    """About 120 bytes of payload."""

    number: int
    body: str = record.BODY


@app.handler(Noop)
async def noop(job: Noop, _ctx: JobContext) -> None:
    """Leaves a record; sleeps when the bench asks for it."""
    await record.work_async(job.number)


if os.environ.get(CALLS):
    from bench.calls import count_here

    count_here(os.environ[CALLS])
