"""Folders in which pages run: nothing, or a shop whose jobs have stopped in every way.

A setup fills the folder and answers the variables that the page's commands may use: `$ID` is a stopped job.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from tests.support.jobs import new_job, new_jobs
from tests.support.stopped import fail, stopped

_APPLICATION = """\
import msgspec

from chokaq import ChokaQ

app = ChokaQ()


@app.job("email.send.v1", queue="emails", priority=20)
class SendEmail(msgspec.Struct):
    to: str
    template: str = "welcome"


@app.job("report.make.v1", queue="reports", execution_timeout=3600)
class MakeReport(msgspec.Struct):
    customer: int


@app.handler(SendEmail)
async def send_email(job: SendEmail) -> None: ...


@app.handler(MakeReport)
def make_report(job: MakeReport) -> None: ...
"""
_YAML = """\
app: jobs:app
database: sqlite:///chokaq.db
queues:
  emails: {max_workers: 20}
  reports: {max_workers: 3, execution_timeout: 1h}
"""


Setup = Callable[[Path], dict[str, str]]


def empty(_folder: Path) -> dict[str, str]:
    """Nothing is there."""
    return {}


def shop(folder: Path) -> dict[str, str]:
    """An application with two queues, its configuration, and an empty store."""
    (folder / "jobs.py").write_text(_APPLICATION, encoding="utf-8")
    (folder / "chokaq.yaml").write_text(_YAML, encoding="utf-8")
    open_store(DatabaseSettings(url=f"sqlite:///{folder / 'chokaq.db'}")).apply_schema()
    return {}


def trouble(folder: Path, looked_at: FailureReason | JobStatus) -> dict[str, str]:
    """The shop after a bad night: e-mails that failed for every reason, a zombie, a cancelled one, jobs that wait.

    `looked_at`: which of them `$ID` is.
    """
    shop(folder)
    found: dict[FailureReason | JobStatus, str] = {}
    store = open_store(DatabaseSettings(url=f"sqlite:///{folder / 'chokaq.db'}"))
    payload = '{"to":"user@example.com","template":"welcome"}'
    reasons = (FailureReason.FATAL_ERROR, FailureReason.THROTTLED, FailureReason.TIMEOUT, FailureReason.TRANSIENT)
    session = store.session()
    try:
        for reason in reasons:
            found[reason] = fail(session, new_jobs(2, queue="emails", payload=payload), reason, queue="emails")[0]
        for status in (JobStatus.ZOMBIE, JobStatus.CANCELLED):
            found[status] = stopped(session, status, new_job(queue="emails", payload=payload))
        session.enqueue_jobs(new_jobs(3, queue="reports", type_key="report.make.v1", payload='{"customer":1}'))
    finally:
        session.close()
    return {"ID": found[looked_at]}


SETUPS: dict[str, Setup] = {
    "empty": empty,
    "shop": shop,
    "trouble": partial(trouble, looked_at=FailureReason.FATAL_ERROR),
    "timeouts": partial(trouble, looked_at=FailureReason.TIMEOUT),
    "zombies": partial(trouble, looked_at=JobStatus.ZOMBIE),
}
"""By the name that a page's `<!-- page: NAME -->` gives; `empty` without one."""
