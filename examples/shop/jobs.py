"""Contracts and handlers of the shop. Handlers may run more than once (at-least-once delivery), so each one carries the job's id
to the outside, where a repeat can be recognised."""

import os
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path

import aiohttp
import aiosmtplib
import msgspec

from chokaq import ChokaQ, FatalError, JobContext, Throttled
from shop.reports import build_report

app = ChokaQ()


@app.job("email.send.v1", queue="emails")
class SendEmail(msgspec.Struct):
    """One e-mail to one recipient."""

    to: str
    template: str


@app.job("message.send.v1", queue="messages")
class SendMessage(msgspec.Struct):
    """One message to a channel of the messaging service."""

    channel: int
    text: str


@app.job("report.excel.create.v1", queue="reports")
class CreateReport(msgspec.Struct):
    """An Excel report about the cities of a country (two letters) or of a time zone."""

    subject: str


async def smtp_connection() -> AsyncIterator[aiosmtplib.SMTP]:
    """One connection per job: opened when the handler asks for it, closed after the job."""
    host, port = os.environ.get("SHOP_SMTP", "127.0.0.1:25").rsplit(":", 1)
    async with aiosmtplib.SMTP(hostname=host, port=int(port), start_tls=False) as smtp:
        yield smtp


_sessions: list[aiohttp.ClientSession] = []


def http_session() -> aiohttp.ClientSession:
    """One session per process, shared by all its jobs: connections are reused."""
    if not _sessions:
        _sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100)))
    return _sessions[0]


app.services.register_factory(aiosmtplib.SMTP, smtp_connection)
app.services.register_factory(aiohttp.ClientSession, http_session, enter=False)


@app.handler(SendEmail)
async def send_email(job: SendEmail, ctx: JobContext, smtp: aiosmtplib.SMTP) -> None:
    """Send it. A temporary refusal (4xx) is retried as any error; a permanent one (5xx) will not get better."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "shop@example.com", job.to, f"Your {job.template}"
    mail["X-Job-Id"] = ctx.id
    mail.set_content(f"Dear customer, here is your {job.template}.")
    try:
        await smtp.send_message(mail)
    except aiosmtplib.SMTPRecipientsRefused as refused:
        if all(recipient.code >= 500 for recipient in refused.recipients):
            raise FatalError(f"the mail server refuses {job.to} for ever") from refused
        raise


@app.handler(SendMessage)
async def send_message(job: SendMessage, ctx: JobContext, http: aiohttp.ClientSession) -> None:
    """Post it; the service may ask for patience (429) or know the channel no more (410)."""
    url = f"http://{os.environ.get('SHOP_HTTP', '127.0.0.1:80')}/channels/{job.channel}"
    async with http.post(url, data=job.text.encode(), headers={"X-Job-Id": ctx.id}) as answer:
        if answer.status == 429:
            raise Throttled(retry_after=float(answer.headers.get("Retry-After", "1")))
        if answer.status == 410:
            raise FatalError(f"channel {job.channel} is gone")
        answer.raise_for_status()


@app.handler(CreateReport)
def create_report(job: CreateReport, ctx: JobContext) -> None:
    """Blocking work in a plain function: it runs in the child's thread pool."""
    folder = Path(os.environ.get("SHOP_REPORTS", "reports"))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{job.subject.replace('/', '-')}--{ctx.id}--{ctx.attempt}.xlsx"
    draft = target.with_suffix(".part")
    build_report(job.subject, draft, ctx.progress)
    draft.replace(target)
