"""An application whose handlers misbehave in every way that a supervisor must survive."""

import asyncio
import os
import time
from typing import Any

from chokaq import ChokaQ, JobContext

app = ChokaQ()
for name in ("quick", "pass_on", "wait", "block", "block_once", "die", "leave", "memory"):
    app.job(f"work.{name}", dict, queue="work")
app.job("work.frail", dict, queue="work", on_crash="retry", crash_limit=5, retry_base_delay=0.01, retry_jitter=0.0)
app.job("work.block_briefly", dict, queue="work", execution_timeout=1.0)
app.job("other.quick", dict, queue="other")
app.job("other.wait", dict, queue="other")


def note(ctx: JobContext) -> None:
    """A line per execution, in a file that several processes append to."""
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"{ctx.id} {ctx.type_key} {ctx.attempt} {os.getpid()}\n".encode())
    os.close(ledger)


@app.handler("work.quick")
async def quick(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)


@app.handler("other.quick")
async def other_quick(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)


@app.handler("work.pass_on")
async def pass_on(job: dict[str, Any], ctx: JobContext) -> None:
    """Enqueue what the job says, from inside a child."""
    note(ctx)
    await app.enqueue(job["type"], {"after": ctx.id})


@app.handler("work.wait")
@app.handler("other.wait")
async def wait(job: dict[str, Any], ctx: JobContext) -> None:
    """Until a file appears."""
    note(ctx)
    while not os.path.exists(job["file"]):  # noqa: PTH110 - one system call, no object
        await asyncio.sleep(0.02)


@app.handler("work.block")
@app.handler("work.block_briefly")
def block(job: dict[str, Any], ctx: JobContext) -> None:
    """In a thread, deaf to cancellation."""
    note(ctx)
    time.sleep(3_600)


@app.handler("work.block_once")
async def block_once(job: dict[str, Any], ctx: JobContext) -> None:
    """Hold the interpreter: no loop, no thread of this process gets a turn."""
    note(ctx)
    if not os.path.exists(job["file"]):  # noqa: PTH110
        os.close(os.open(job["file"], os.O_CREAT, 0o600))
        sum(range(10**12))


@app.handler("work.die")
async def die(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)
    os.kill(os.getpid(), 11)


@app.handler("work.frail")
async def frail(job: dict[str, Any], ctx: JobContext) -> None:
    """Ends its process twice, then not."""
    note(ctx)
    if ctx.attempt < 3:
        os.kill(os.getpid(), 11)


@app.handler("work.leave")
async def leave(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)
    os._exit(0)
