"""The application that the child programs of these tests import."""

import asyncio
import os
import threading
from pathlib import Path

import msgspec

from chokaq import ChokaQ
from chokaq.jobs.context import JobContext

app = ChokaQ()
folder = Path(os.environ["CHOKAQ_TEST_FOLDER"])


@app.job("note.v1", queue="notes")
class Note(msgspec.Struct):
    """Leaves a file when it has run."""

    name: str
    wait: str = ""


@app.handler(Note)
async def note(job: Note, ctx: JobContext) -> None:
    """`wait`: forever (until cancelled), stuck (a thread that never ends blocks the job), die (the process ends).

    threads: leaves threads behind that never end.
    """
    (folder / f"{job.name}.began").write_text(str(os.getpid()), encoding="ascii")
    if job.wait == "forever":
        await asyncio.Event().wait()
    if job.wait == "stuck":
        while True:
            try:
                await asyncio.to_thread(threading.Event().wait)
            except asyncio.CancelledError:
                continue
    if job.wait == "threads":
        for _ in range(64):
            asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    if job.wait == "die":
        os.abort()
    (folder / f"{job.name}.done").write_text(str(ctx.attempt), encoding="ascii")
