"""The table of a list of jobs. It never shows a payload."""

from collections.abc import Container, Sequence

from chokaq.deck.pages import words
from chokaq.deck.pages.nodes import Node, button, dash, el, link, when
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td, th
from chokaq.deck.shown import Search
from chokaq.lifecycle.states import JobStatus, Pillar
from chokaq.store.records import JobView


def job_table(screen: Screen, jobs: Sequence[JobView], where: Search, selected: Container[str]) -> Node:
    """Columns by pillar; a box to select each when the viewer may change anything."""
    may = screen.user.may_change
    everything = all(job.id in selected for job in jobs)
    headings: list[list[object] | str | None] = [
        th("", el("input", type="checkbox", checked=everything, act="select-all", aria_label="Select all on this page"))
        if may
        else None,
        _sorted_by("created", "Job", where),
        "Status",
        "Type",
        "Queue",
        *_extra_headings(where),
        th("Tries", kind="num"),
        th("Priority", kind=_spare("num", where)),
        *_last_headings(where),
    ]
    rows = [_row(screen, job, where, job.id in selected, may=may) for job in jobs]
    return table(head(*(heading for heading in headings if heading is not None)), rows, "rows.jobs", "Jobs")


def _extra_headings(where: Search) -> list[list[object] | str]:
    if where.pillar is Pillar.HOT:
        return ["Progress", "Due"]
    if where.pillar is Pillar.ARCHIVE:
        return [th("Took", kind="num")]
    return ["Error"] if where.pillar is Pillar.DLQ else ["What of it"]


def _last_headings(where: Search) -> list[list[object] | str]:
    created = th("Enqueued", kind=_spare("", where))
    if where.pillar is Pillar.HOT:
        return ["Tags", created]
    return [th("Tags", kind="extra"), _sorted_by("ended", "Ended", where) if where.pillar else th("Ended"), created]


def _sorted_by(name: str, text: str, where: Search) -> list[object]:
    mine = where.sort == name
    arrow = (" ↓" if where.descending else " ↑") if mine else ""
    order = ("descending" if where.descending else "ascending") if mine else "none"
    return th(
        "",
        button("sort", text + arrow, value=name, kind="sort", title="Sort by it; press again for the other way"),
        aria_sort=order,
    )


def _row(screen: Screen, job: JobView, where: Search, chosen: bool, *, may: bool) -> Node:
    cells: list[Node] = []
    if may:
        cells.append(
            td(
                "Select",
                el("input", type="checkbox", checked=chosen, act="select", value=job.id, aria_label=f"Select {job.id}"),
                kind="box",
            )
        )
    cells += [
        td("Job", link(screen.job_url(job.id), job.id, class_="id"), kind="wide"),
        td(
            "Status",
            words.status(job.status),
            " " if job.failure_reason is not None else None,
            words.reason(job.failure_reason) if _says_more(job) else None,
            _cancelling(job),
            kind="nowrap",
        ),
        td("Type", job.type_key, kind="clip", title=job.type_key),
        td("Queue", job.queue, kind="nowrap"),
    ]
    if where.pillar is Pillar.HOT:
        cells += [td("Progress", progress(job)), td("Due", _due(job), kind="nowrap")]
    elif where.pillar is Pillar.ARCHIVE:
        cells.append(td("Took", words.duration(job.duration_ms), kind="num"))
    elif where.pillar is Pillar.DLQ:
        cells.append(_error(job))
    else:
        cells.append(
            _error(job)
            if job.pillar is Pillar.DLQ
            else td(
                "What of it",
                _due(job) if job.pillar is Pillar.HOT else el("span.faint", f"took {words.duration(job.duration_ms)}"),
                kind="clip",
            )
        )
    cells += [
        td(
            "Tries",
            job.attempt_count,
            el("span.warn", f" +{job.crash_count} crash") if job.crash_count else None,
            kind="num",
        ),
        td("Priority", job.priority, kind=_spare("num", where)),
        td("Tags", job.tags or dash(), kind=_spare("clip", where), title=job.tags),
    ]
    if where.pillar is not Pillar.HOT:
        cells.append(td("Ended", when(job.finished_at), kind="nowrap"))
    cells.append(td("Enqueued", when(job.created_at), kind=_spare("nowrap", where)))
    return el("tr.chosen" if chosen else "tr", *cells, key=job.id)


def _spare(kind: str, where: Search) -> str:
    """Columns that are left out where there is little room; their values stand on the job's page."""
    return kind if where.pillar is Pillar.HOT else ".".join(part for part in (kind, "extra") if part)


def _says_more(job: JobView) -> bool:
    return job.failure_reason is not None and job.failure_reason.label != job.status.label


def _cancelling(job: JobView) -> Node:
    return el("span.badge.warn", "being cancelled") if job.cancel_requested_at and job.pillar is Pillar.HOT else None


def _error(job: JobView) -> Node:
    told = words.cut(job.error_message, 160)
    return td(
        "Error",
        el("b", words.error_name(job.error_type), title=job.error_type),
        " " if job.error_type else None,
        told or dash(),
        kind="clip",
        title=job.error_message,
    )


def _due(job: JobView) -> Node:
    if job.status is JobStatus.PROCESSING:
        return el("span", "running for ", when(job.started_at, "age"))
    return when(job.due_at)


def progress(job: JobView) -> Node:
    """How far it says it is."""
    if job.progress is None:
        return dash()
    return el(
        "span.progress",
        el("i", style=f"width:{job.progress}%"),
        el("span", f"{job.progress} %"),
        role="progressbar",
        aria_valuenow=job.progress,
        aria_valuemin="0",
        aria_valuemax="100",
    )
