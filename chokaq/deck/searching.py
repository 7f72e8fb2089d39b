"""Lists of jobs: what a URL says, and one page of one pillar or of all three."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from chokaq.deck.shown import JobsPage, Search
from chokaq.jobs import envelope
from chokaq.jobs.errors import EnqueueError
from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.operations.cursors import cursor_of, position_of
from chokaq.operations.errors import OperationError
from chokaq.operations.filters import MAX_TEXT, REASONS, STATUSES
from chokaq.operations.jobs import MAX_PAGE, check_id
from chokaq.operations.queues import check_queue
from chokaq.store.looking import Browse, BrowsePage, Place
from chokaq.store.protocol import Session
from chokaq.store.records import JobView

Word = TypeVar("Word")

MAX_ERROR_TYPE = 255
_PARAMETERS = ("pillar", "queue", "status", "type", "reason", "error", "tag", "q", "from", "until", "sort", "dir")


def search_of(query: Mapping[str, str]) -> Search:
    """A search out of the parameters of a URL; others are not looked at. Raises OperationError naming the parameter."""
    given = {name: query[name] for name in _PARAMETERS if query.get(name, "").strip()}
    sort = _one_of("sort", given.get("sort", "created"), {"created": "created", "ended": "ended"})
    direction = _one_of("dir", given.get("dir", "desc"), {"desc": True, "asc": False})
    where = Search(
        pillar=_word(given, "pillar", {pillar.value: pillar for pillar in Pillar}),
        queue=check_queue(given["queue"]) if "queue" in given else None,
        status=_word(given, "status", STATUSES),
        type_key=_type(given.get("type")),
        reason=_word(given, "reason", REASONS),
        error_type=_text(given, "error", MAX_ERROR_TYPE),
        tag=_text(given, "tag", MAX_TEXT),
        text=_text(given, "q", MAX_TEXT),
        stopped_from=_instant(given, "from"),
        stopped_until=_instant(given, "until"),
        sort="ended" if sort == "ended" else "created",
        descending=direction,
    )
    pillars_of(where)
    return where


def to_query(where: Search) -> dict[str, str]:
    """The parameters of a URL that mean this search; those that say nothing are left out."""
    said = {
        "pillar": None if where.pillar is None else where.pillar.value,
        "queue": where.queue,
        "status": None if where.status is None else where.status.label,
        "type": where.type_key,
        "reason": None if where.reason is None else where.reason.label,
        "error": where.error_type,
        "tag": where.tag,
        "q": where.text,
        "from": None if where.stopped_from is None else where.stopped_from.isoformat(),
        "until": None if where.stopped_until is None else where.stopped_until.isoformat(),
        "sort": None if where.sort == "created" else where.sort,
        "dir": None if where.descending else "asc",
    }
    return {name: text for name, text in said.items() if text is not None}


def pillars_of(where: Search) -> list[Pillar]:
    """Where jobs of a search can stand. Raises OperationError for one that no job can fit."""
    found = [Pillar.HOT, Pillar.ARCHIVE, Pillar.DLQ] if where.pillar is None else [where.pillar]
    if where.status is not None:
        found = [pillar for pillar in found if pillar is _home(where.status)]
        if not found:
            raise OperationError(
                f"{where.status.label} stands in the pillar {_home(where.status).value}: leave the pillar out"
            )
    if where.reason is not None or where.error_type is not None:
        found = [pillar for pillar in found if pillar is Pillar.DLQ]
        if not found:
            raise OperationError(
                "only jobs of the DLQ have a failure reason and an error type: leave pillar and status out"
            )
    if where.stopped_from is not None or where.stopped_until is not None or where.sort == "ended":
        found = [pillar for pillar in found if pillar is not Pillar.HOT]
        if not found:
            raise OperationError("jobs of the pillar hot have not ended: there is nothing to sort or choose by")
    if where.stopped_from is not None and where.stopped_until is not None and where.stopped_from > where.stopped_until:
        raise OperationError("no job can have ended in this time: `from` comes before `until`")
    if where.sort == "ended" and len(found) > 1:
        raise OperationError("sorting by the end needs one pillar: archive or dlq")
    return found


def read_page(session: Session, where: Search, limit: int, after: str | None) -> JobsPage:
    """One page. Raises OperationError."""
    if not 1 <= limit <= MAX_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_PAGE} jobs, not {limit:,}")
    pillars = pillars_of(where)
    place = None if after is None else _place(position_of("deck", where, after))
    if where.text is not None and place is None and (named := _named(session, where, pillars)) is not None:
        return JobsPage(jobs=[named], after=None, examined=1, partial=False)
    pages = [session.browse_jobs(_browse(where, pillar), limit, place) for pillar in pillars]
    page = pages[0] if len(pages) == 1 else merged(pages, limit, descending=where.descending)
    look = _browse(where, pillars[0]).look
    return JobsPage(
        jobs=page.jobs,
        after=None if page.after is None else cursor_of("deck", where, f"{page.after.ended_ms}:{page.after.id}"),
        examined=look * len(pages) if page.partial else len(page.jobs),
        partial=page.partial,
    )


def merged(pages: list[BrowsePage], limit: int, *, descending: bool) -> BrowsePage:
    """Pages of several pillars, each in the order of ids, as one.

    It is whole as far as the page that ends first; a job that moved between two reads is shown once.
    """
    ends = [page.after.id for page in pages if page.after is not None]
    end = (max(ends) if descending else min(ends)) if ends else None
    found = {job.id: job for page in pages for job in page.jobs}
    ids = sorted(found, reverse=descending)
    if end is not None:
        ids = [job_id for job_id in ids if (job_id >= end if descending else job_id <= end)]
    jobs = [found[job_id] for job_id in ids[:limit]]
    if len(ids) > limit:
        return BrowsePage(jobs, Place(ids[limit - 1]), False)
    partial = len(ids) < limit and any(page.partial for page in pages)
    return BrowsePage(jobs, None if end is None else Place(end), partial)


def _named(session: Session, where: Search, pillars: list[Pillar]) -> JobView | None:
    """The one job whose whole id is the text, when nothing else is asked."""
    try:
        wanted = check_id(where.text or "")
    except OperationError:
        return None
    if msgspec.structs.replace(where, text=None, pillar=None) != Search(sort=where.sort, descending=where.descending):
        return None
    job = session.get_job(wanted)
    if job is None or job.pillar not in pillars:
        return None
    return msgspec.structs.replace(job, payload=None, headers=None, note=None)


def _browse(where: Search, pillar: Pillar) -> Browse:
    return Browse(
        pillar=pillar,
        queue=where.queue,
        status=where.status,
        type_key=where.type_key,
        reason=where.reason,
        error_type=where.error_type,
        tag=where.tag,
        text=where.text,
        ended_from=where.stopped_from,
        ended_until=where.stopped_until,
        by_end=where.sort == "ended",
        descending=where.descending,
    )


def _place(position: str) -> Place:
    ended, _, job_id = position.partition(":")
    if not ended.isdecimal() or len(ended) > 15:
        raise OperationError("this cursor is damaged: begin anew without one")
    return Place(check_id(job_id), int(ended))


def _home(status: JobStatus) -> Pillar:
    if status < JobStatus.SUCCEEDED:
        return Pillar.HOT
    return Pillar.ARCHIVE if status == JobStatus.SUCCEEDED else Pillar.DLQ


def _one_of(name: str, text: str, known: Mapping[str, Word]) -> Word:
    folded = text.strip().lower().replace("_", "").replace("-", "")
    for word, value in known.items():
        if word.lower() == folded:
            return value
    raise OperationError(f"{name}: there is no {text[:60]!r}; it is one of {', '.join(known)}")


def _word(given: Mapping[str, str], name: str, known: Mapping[str, Word]) -> Word | None:
    return _one_of(name, given[name], known) if name in given else None


def _text(given: Mapping[str, str], name: str, most: int) -> str | None:
    return _checked(name, given[name], lambda text: envelope.check_text(name, text, most)) if name in given else None


def _type(text: str | None) -> str | None:
    return None if text is None else _checked("type", text, lambda found: envelope.check_name("type", found))


def _checked(name: str, text: str, check: Callable[[str], str | None]) -> str | None:
    try:
        return check(text)
    except EnqueueError as error:
        told = str(error)
        raise OperationError(told if told.startswith(name) else f"{name}: {told}") from None


def _instant(given: Mapping[str, str], name: str) -> datetime | None:
    if name not in given:
        return None
    try:
        found = datetime.fromisoformat(given[name].replace(" ", "+", 1) if " " in given[name][11:] else given[name])
    except ValueError:
        raise OperationError(f"{name}: {given[name][:60]!r} is no instant; write 2026-05-01T12:00:00+00:00") from None
    if found.utcoffset() is None:
        raise OperationError(f"{name}: {given[name][:60]!r} names no time zone: end it with Z or +02:00")
    return found
