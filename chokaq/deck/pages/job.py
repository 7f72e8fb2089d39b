"""The page of one job: what it is, where it stands, what happened to it, and what may be done with it."""

from functools import partial

from chokaq.deck import topics
from chokaq.deck.pages import job_history, words
from chokaq.deck.pages.dialogs import Question, Values
from chokaq.deck.pages.job_edit import EditJob
from chokaq.deck.pages.jobs_actions import TOLD, perform
from chokaq.deck.pages.jobs_table import progress
from chokaq.deck.pages.nodes import Child, Node, button, el, link, when
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import card, facts
from chokaq.deck.shown import JobPage
from chokaq.lifecycle.states import JobStatus, KeyScope, Pillar
from chokaq.operations.confirm import Action
from chokaq.operations.errors import OperationError
from chokaq.store.records import JobView

_SCOPES = {
    KeyScope.ACTIVE: "free again when the job leaves Hot",
    KeyScope.RETAINED: "held as long as its row exists",
    KeyScope.WINDOW: "held for a time from acceptance",
}


class JobScreen:
    """One job."""

    def __init__(self, screen: Screen, job_id: str) -> None:
        """On this screen."""
        self.screen, self.job_id = screen, job_id
        self.part = screen.part(self._read, self._draw)
        for action in (Action.CANCEL, Action.RESURRECT, Action.DROP, Action.PURGE):
            screen.on(action.value, partial(self._ask, action))
        screen.on("edit", self._edit)

    async def open(self) -> None:
        """Read, then listen."""
        await self.screen.open(self.part)
        self.screen.listen(topics.job(self.job_id), self.part)

    async def _read(self) -> JobPage:
        return await self.screen.desk.reads.job(self.job_id)

    @property
    def page(self) -> JobPage:
        """What is shown now. Raises OperationError when nothing is."""
        if not isinstance(self.part.data, JobPage):
            raise OperationError("the job is not shown: load the page again")
        return self.part.data

    # ── looks ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _draw(self, page: JobPage) -> list[Node]:
        job = page.detail.job
        return [
            self._head(page),
            el(
                "div.halves",
                el("div.half", self._now(page), job_history.payload_card(page), job_history.headers_card(page)),
                el(
                    "div.half",
                    job_history.risks_card(page) if job.pillar is Pillar.DLQ else None,
                    job_history.attempts_card(self.screen, page),
                    job_history.claims_card(page),
                    job_history.audit_card(self.screen, page),
                ),
            ),
        ]

    def _head(self, page: JobPage) -> Node:
        job = page.detail.job
        return el(
            "div.head.job",
            el(
                "div",
                el(
                    "div.crumbs",
                    link(self.screen.url("/jobs"), "Jobs"),
                    " / ",
                    link(self.screen.url("/jobs", {"pillar": job.pillar.value}), _PILLARS[job.pillar]),
                ),
                el("h1", job.type_key),
                el("div.id", job.id),
            ),
            el(
                "div.badges",
                words.status(job.status),
                words.reason(job.failure_reason)
                if job.failure_reason is not None and job.failure_reason.label != job.status.label
                else None,
                el("span.badge.warn", "being cancelled")
                if job.cancel_requested_at and job.pillar is Pillar.HOT
                else None,
            ),
            el("div.buttons", *self._buttons(page)),
        )

    def _buttons(self, page: JobPage) -> list[Node]:
        if not self.screen.user.may_change:
            return []
        job = page.detail.job
        found: list[Node] = []
        if page.editable:
            found.append(button("edit", "Edit…"))
        if job.pillar is Pillar.HOT:
            found.append(button("cancel", "Cancel…", disabled=job.cancel_requested_at is not None))
        if job.pillar is Pillar.DLQ and job.status is not JobStatus.DROPPED:
            found += [button("resurrect", "Resurrect…", kind="primary"), button("drop", "Drop…", kind="danger-quiet")]
        if job.pillar is not Pillar.HOT:
            found.append(button("purge", "Purge…", kind="danger-quiet"))
        return found

    def _now(self, page: JobPage) -> Node:
        job = page.detail.job
        running = []
        if job.status is JobStatus.PROCESSING:
            running = [
                el(
                    "div.running",
                    progress(job),
                    el("span", job.note) if job.note else None,
                    el("span.faint", "running for ", when(job.started_at, "age")),
                )
            ]
        error = None
        if job.error_message or job.error_type:
            error = el("div.error", el("b", job.error_type), el("pre.wrap", job.error_message or "no message"))
        return card("The job", *running, error, facts(_facts(self.screen, page, job)))

    # ── actions ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _ask(self, action: Action, _: object) -> None:
        job = self.page.detail.job
        due = self.screen.desk.actions.confirmation(action, 1)

        async def run(values: Values) -> str:
            told = await perform(self.screen, action, [job.id], values)
            await self.part.refresh()
            return told

        verb, told = TOLD[action]
        risks = self.page.risks if action is Action.RESURRECT else []
        Question(
            self.screen,
            f"{verb} this job?",
            run,
            verb=verb,
            danger=action in (Action.DROP, Action.PURGE),
            confirmation=due,
            body=[
                el("p", _ONE.get(action, told)),
                el("ul.risks", *(el("li", risk) for risk in risks)) if risks else None,
            ],
            fields=[el("label.check", el("input", type="checkbox", name="without_key"), " without its key")]
            if action is Action.RESURRECT and job.idempotency_key
            else [],
            reason="required" if action is Action.DROP else "optional",
        )

    async def _edit(self, _: object) -> None:
        EditJob(self.screen, self.page, self.part.refresh)


_PILLARS = {Pillar.HOT: "Hot", Pillar.ARCHIVE: "Archive", Pillar.DLQ: "DLQ"}
_ONE = {
    Action.CANCEL: "If it waits it ends Cancelled at once; if it runs it is told to stop.",
    Action.RESURRECT: "It returns to Pending with its key, priority and headers, and begins again.",
    Action.DROP: "It is decided never to run. It stays readable, and there is no way back.",
    Action.PURGE: "It is deleted, with its payload and errors. Only the audit log remembers it. There is no way back.",
}


def _facts(screen: Screen, page: JobPage, job: JobView) -> list[tuple[str, Child]]:
    found: list[tuple[str, Child]] = [
        ("Queue", link(screen.url("/jobs", {"pillar": job.pillar.value, "queue": job.queue}), job.queue)),
        (
            "Tries",
            el(
                "span",
                f"{job.attempt_count:,} started",
                el("span.warn", f", process died {job.crash_count:,} times") if job.crash_count else None,
            ),
        ),
        ("Priority", job.priority),
        ("Enqueued", when(job.created_at, "full")),
        ("Due", when(job.due_at, "full")),
    ]
    if job.started_at:
        found.append(("Started", when(job.started_at, "full")))
    if job.finished_at:
        found.append(("Succeeded" if job.status is JobStatus.SUCCEEDED else "Stopped", when(job.finished_at, "full")))
    if job.duration_ms is not None:
        found.append(("Took", words.duration(job.duration_ms)))
    if page.owner is not None:
        worker = page.owner.worker
        place = f"{worker.host}, pid {worker.pid}, queue {worker.queue}" if worker else "in no registry any more"
        found.append(
            (
                "Owner",
                el(
                    "span",
                    el(
                        "i.light.ok" if page.owner.alive else "i.light.critical",
                        role="img",
                        aria_label="alive" if page.owner.alive else "not alive",
                    ),
                    el("span.id", job.worker_id or ""),
                    el("small.faint.block", f"{place}; {page.owner.sentence}"),
                ),
            )
        )
    elif job.worker_id:
        found.append(("Last owner", el("span.id", job.worker_id)))
    if job.cancel_requested_at:
        found.append(("Cancellation asked", when(job.cancel_requested_at, "full")))
    if job.idempotency_key:
        found.append(
            ("Key", el("span", el("code", job.idempotency_key), el("small.faint.block", _SCOPES[job.key_scope])))
        )
    found += [("Tags", job.tags or el("span.faint", "none")), ("Lease", job.lease)]
    if job.created_by or job.owner_login:
        found.append(
            ("Enqueued by", " · ".join(dict.fromkeys(who for who in (job.created_by, job.owner_login) if who)))
        )
    return found
