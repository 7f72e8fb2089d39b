"""The application of the chaos suite: handlers that behave and misbehave, and a ledger of their own beside the store.

A line when an execution begins and one when its handler ends: `b|e id lease attempt worker pid type wall_ms mono_ns how`. Nothing
in it comes from the store but the job's own facts, so it can be held against the store afterwards. `wall_ms` is this process's
clock, which a scenario may have falsified; `mono_ns` is the host's monotonic clock.
"""

import asyncio
import ctypes
import os
import time
from datetime import timedelta
from typing import Any

from chokaq import ChokaQ, FatalError, JobContext, Throttled
from chokaq.jobs.registry import Next

app = ChokaQ()
for name in ("quick", "long", "thread", "flaky", "snooze", "fatal"):
    app.job(f"chaos.{name}", dict)
app.job("chaos.exhausted", dict, max_attempts=2)
app.job("chaos.throttled", dict, max_attempts=2)
app.job("chaos.slow", dict, execution_timeout=0.5)
app.job("chaos.fragile", dict, on_crash="dead_letter")
app.job("chaos.poison", dict, crash_limit=2)
app.job("chaos.blocker", dict)
app.job("chaos.holder", dict)
app.job("chaos.hog", dict, execution_timeout=1.0, hard_limit_grace=1.0)

_ledger: dict[int, int] = {}


def hold_the_interpreter() -> None:
    """For ever, in C, with the GIL and deaf to signals: lock a mutex that this thread already holds."""
    library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)


def note(mark: str, ctx: JobContext, how: str) -> None:
    """One line, one write: O_APPEND keeps lines of several processes whole."""
    pid = os.getpid()
    descriptor = _ledger.get(pid)
    if descriptor is None:
        descriptor = os.open(os.environ["CHAOS_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _ledger[pid] = descriptor
    wall, steady = time.time_ns() // 1_000_000, time.monotonic_ns()
    line = f"{mark} {ctx.id} {ctx.lease} {ctx.attempt} {ctx.worker_id} {pid} {ctx.type_key} {wall} {steady} {how}\n"
    os.write(descriptor, line.encode())


@app.middleware
async def keep_the_ledger(job: Any, ctx: JobContext, next_: Next) -> None:
    """Around every handler."""
    note("b", ctx, "-")
    how = "ok"
    try:
        await next_()
    except asyncio.CancelledError:
        how = f"cancelled:{ctx.cancel_reason}"
        raise
    except BaseException as error:
        how = type(error).__name__
        raise
    finally:
        note("e", ctx, how)


@app.handler("chaos.quick")
async def quick(job: dict[str, Any]) -> None:
    """Most jobs of most applications."""


@app.handler("chaos.long")
async def long(job: dict[str, Any], ctx: JobContext) -> None:
    """Reports progress on its way."""
    for step in range(4):
        ctx.progress(step * 25, f"step {step}")
        await asyncio.sleep(job["seconds"] / 4)


@app.handler("chaos.fragile")
async def fragile(job: dict[str, Any]) -> None:
    """Must not be tried again when its process dies: it may have had its effect."""
    await asyncio.sleep(job["seconds"])


@app.handler("chaos.thread")
def thread(job: dict[str, Any]) -> None:
    """A plain function."""
    time.sleep(job["seconds"])


@app.handler("chaos.flaky")
async def flaky(job: dict[str, Any], ctx: JobContext) -> None:
    """Fails a few times."""
    if ctx.attempt <= job["fails"]:
        raise ConnectionError("not yet")


@app.handler("chaos.snooze")
async def snooze(job: dict[str, Any], ctx: JobContext) -> None:
    """Puts itself off a few times."""
    if ctx.lease <= job["times"]:
        ctx.snooze(timedelta(milliseconds=30))


@app.handler("chaos.fatal")
async def fatal(job: dict[str, Any]) -> None:
    """Never works, and says so."""
    raise FatalError("never")


@app.handler("chaos.exhausted")
async def exhausted(job: dict[str, Any]) -> None:
    """Never works, and does not know it."""
    raise ConnectionError("always")


@app.handler("chaos.throttled")
async def throttled(job: dict[str, Any]) -> None:
    """Is asked for patience again and again."""
    raise Throttled(timedelta(milliseconds=40))


@app.handler("chaos.slow")
async def slow(job: dict[str, Any]) -> None:
    """Runs into its timeout."""
    await asyncio.sleep(3_600)


@app.handler("chaos.poison")
async def poison(job: dict[str, Any]) -> None:
    """Ends its process, every time."""
    os.kill(os.getpid(), 9)


@app.handler("chaos.blocker")
async def blocker(job: dict[str, Any], ctx: JobContext) -> None:
    """Stops the event loop, the first time; other threads still get a turn."""
    if ctx.attempt == 1:
        time.sleep(3_600)


@app.handler("chaos.holder")
async def holder(job: dict[str, Any], ctx: JobContext) -> None:
    """Holds the interpreter, the first time: no thread of the process gets a turn."""
    if ctx.attempt == 1:
        hold_the_interpreter()


@app.handler("chaos.hog")
async def hog(job: dict[str, Any]) -> None:
    """Holds the interpreter past its hard limit, every time."""
    hold_the_interpreter()
