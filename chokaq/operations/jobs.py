"""Looking at jobs, and cancelling them."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from chokaq.jobs.ids import new_id
from chokaq.lifecycle.states import Pillar
from chokaq.operations.actor import By, require_operator
from chokaq.operations.cursors import cursor_of, position_of
from chokaq.operations.errors import OperationError, UnknownJob
from chokaq.operations.telling import command
from chokaq.store.claims import ClaimView
from chokaq.store.protocol import Session
from chokaq.store.records import Attempt, AuditEntry, CancelAnswer, JobFilter, JobView, Page
from chokaq.store.repairs import DlqFilter

MAX_BATCH = 1_000
MAX_PAGE = 500
SHOWN_AUDIT = 50

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class JobDetail(msgspec.Struct, frozen=True):
    """A job with its history."""

    job: JobView
    attempts: list[Attempt]
    audit: list[AuditEntry]
    claims: list[ClaimView] = []
    """The idempotency keys that its runs hold or have completed, with what these kept."""


def check_id(text: str, what: str = "job") -> str:
    """An id in its stored form. Raises OperationError when it cannot be one."""
    wanted = text.strip().upper()
    if not _ULID.fullmatch(wanted):
        raise OperationError(f"{text[:60]!r} is not a {what} id: an id is a ULID of 26 letters and digits")
    return wanted


def check_ids(verb: str, job_ids: Sequence[str]) -> list[str]:
    """1 to 1,000 distinct job ids in their stored form, in the order named. Raises OperationError."""
    distinct = list(dict.fromkeys(check_id(job_id) for job_id in job_ids))
    if not 1 <= len(distinct) <= MAX_BATCH:
        raise OperationError(f"{verb} 1 to {MAX_BATCH:,} jobs at a time, not {len(distinct):,}")
    return distinct


@command("cancel")
def cancel_jobs(session: Session, job_ids: Sequence[str], who: By) -> list[CancelAnswer]:
    """Cancel 1 to 1,000 jobs, each named once or more; one answer per distinct job, in the order named.

    A job that waits is cancelled at once; one that runs is told; one that has ended stays as it is.
    """
    require_operator(who)
    return session.cancel_jobs(check_ids("cancel", job_ids), who.actor, who.reason, request=new_id())


def show_job(session: Session, job_id: str) -> JobDetail:
    """A job with payload, failed attempts, idempotency keys, what operators did to it. Raises OperationError when there is none."""
    wanted = check_id(job_id)
    job = session.get_job(wanted)
    if job is None:
        raise UnknownJob(f"there is no job {wanted}: never enqueued here, not committed yet, or purged")
    return JobDetail(
        job, session.list_attempts(wanted), session.list_audit(wanted, SHOWN_AUDIT), session.list_claims(wanted)
    )


def list_jobs(session: Session, where: JobFilter, limit: int = 50, after: str | None = None) -> Page:
    """One page of a pillar, newest first. `limit`: 1 to 500; `after`: the cursor of the page before, of the same filter."""
    return _page(session, where, limit, after, bound=where)


class PlacedPage(msgspec.Struct, frozen=True):
    """One page of a list over several databases, newest first."""

    jobs: list[tuple[str, JobView]]
    """Each with the name of its database."""
    after: str | None


def merge_pages(pages: Mapping[str, Page], limit: int, bound: object) -> PlacedPage:
    """Pages of the same list (`bound`: its filter, as its cursors know it) out of several databases, as one of `limit` jobs.

    Its cursor is one for all of them: they were and will be asked for what lies behind the same id.
    """
    jobs = [(name, job) for name, page in pages.items() for job in page.jobs]
    jobs.sort(key=lambda placed: placed[1].id, reverse=True)
    more = len(jobs) > limit or any(page.after is not None for page in pages.values())
    shown = jobs[:limit]
    return PlacedPage(shown, cursor_of("jobs", bound, shown[-1][1].id) if more and shown else None)


def bound_of(where: DlqFilter, older_than: float | None) -> object:
    """What a cursor of a list of the DLQ is bound to (see `list_stopped`)."""
    shown = JobFilter(pillar=Pillar.DLQ, **msgspec.structs.asdict(where))
    return shown if older_than is None else [msgspec.structs.replace(shown, failed_until=None), older_than]


def list_stopped(
    session: Session, where: DlqFilter, limit: int = 50, after: str | None = None, *, older_than: float | None = None
) -> Page:
    """One page of the DLQ, newest first by id; `limit` and `after` as for `list_jobs`.

    `older_than`: the age in seconds that `where.failed_until` was counted back from. A cursor is bound to the age then, since the
    instant moves on from page to page. A search looks at the newest 10,000 jobs (by id) that fit the rest of the filter.
    """
    shown = JobFilter(pillar=Pillar.DLQ, **msgspec.structs.asdict(where))
    return _page(session, shown, limit, after, bound=bound_of(where, older_than))


def _page(session: Session, where: JobFilter, limit: int, after: str | None, *, bound: object) -> Page:
    if not 1 <= limit <= MAX_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_PAGE} jobs, not {limit:,}")
    page = session.list_jobs(where, limit, None if after is None else check_id(position_of("jobs", bound, after)))
    return Page(page.jobs, None if page.after is None else cursor_of("jobs", bound, page.after))
