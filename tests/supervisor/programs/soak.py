"""An application whose memory is looked at: one queue that keeps nothing, one that keeps a little of every job."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from chokaq import ChokaQ, FatalError, JobContext

QUEUES = ("steady", "leaky")
app = ChokaQ()
kept: list[tuple[str, bytes]] = []


class Look(msgspec.Struct):
    """What a child holds while nothing else runs in it."""

    queue: str
    pid: int
    blocks: int
    """Python's memory blocks in use, after a collection. A batch that has just ended may still be in somebody's hands."""
    private_kb: int
    """Memory that is this process's alone, C libraries included: coarse."""


for _queue in QUEUES:
    app.job(f"{_queue}.work", dict, queue=_queue)
    app.job(f"{_queue}.look", dict, queue=_queue)


@app.handler("steady.work")
async def steady(job: dict[str, Any], ctx: JobContext) -> None:
    """Every tenth fails, so that this way is walked too."""
    if job["n"] % 10 == 0:
        raise FatalError("one of ten fails")


@app.handler("leaky.work")
async def leaky(job: dict[str, Any], ctx: JobContext) -> None:
    """Keeps an id and 1 KiB, as a cache without a bound does."""
    kept.append((ctx.id, os.urandom(1_024)))


@app.handler("steady.look")
@app.handler("leaky.look")
async def look(job: dict[str, Any], ctx: JobContext) -> None:
    """Append a look to the ledger."""
    gc.collect()
    rollup = Path("/proc/self/smaps_rollup").read_text()
    private = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    line = msgspec.json.encode(Look(ctx.type_key.partition(".")[0], os.getpid(), sys.getallocatedblocks(), private))
    with Path(os.environ["LEDGER"]).open("ab") as ledger:
        ledger.write(line + b"\n")
