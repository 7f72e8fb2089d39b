"""The application of the browser tests: letters that need an address, and reports that run until they are told to stop."""

import asyncio
import os
from pathlib import Path

import msgspec

from chokaq import ChokaQ, FatalError, JobContext

app = ChokaQ()


@app.job("email.send.v1", queue="emails")
class SendEmail(msgspec.Struct):
    to: str
    template: str = "welcome"


@app.handler(SendEmail)
async def send_email(job: SendEmail, ctx: JobContext) -> None:
    if "@" not in job.to and not Path(os.environ["SHOP_MENDED"]).exists():
        raise FatalError(f"{job.to!r} is no address")


@app.job("report.build.v1", queue="reports")
class BuildReport(msgspec.Struct):
    name: str


@app.handler(BuildReport)
async def build_report(job: BuildReport, ctx: JobContext) -> None:
    ctx.progress(40, "half of the pages")
    await asyncio.Event().wait()
