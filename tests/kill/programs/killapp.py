"""The application of the child kill tests: handlers that leave a line per execution in a ledger."""

import asyncio
import os
from datetime import timedelta
from typing import Any

from chokaq import ChokaQ, FatalError, JobContext

QUEUE = "kill"
app = ChokaQ()
for kind in ("ok", "slow", "retry", "snooze", "fatal"):
    app.job(f"kill.{kind}", dict, queue=QUEUE)


def note(ctx: JobContext) -> None:
    """One line per execution, with the supervisor's pid; O_APPEND keeps lines of several processes whole."""
    ledger = os.open(os.environ["KILL_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"{ctx.id} {ctx.type_key} {ctx.attempt} {os.getppid()}\n".encode())
    os.close(ledger)


@app.handler("kill.ok")
async def succeed(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)


@app.handler("kill.slow")
async def outlast_some_heartbeats(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)
    for step in range(4):
        ctx.progress(step * 25)
        await asyncio.sleep(0.25)


@app.handler("kill.retry")
async def fail_once(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)
    if ctx.attempt == 1:
        raise RuntimeError("not yet")


@app.handler("kill.snooze")
async def snooze_once(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)
    marker = f"{os.environ['KILL_LEDGER']}.{ctx.id}"
    if not os.path.exists(marker):  # noqa: PTH110 - one system call, no object
        os.close(os.open(marker, os.O_CREAT, 0o600))
        ctx.snooze(timedelta(milliseconds=50))


@app.handler("kill.fatal")
async def give_up(job: dict[str, Any], ctx: JobContext) -> None:
    note(ctx)
    raise FatalError("never")
