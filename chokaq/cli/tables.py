"""How jobs and their histories look: a page of a list, the facts of one job, its attempts, what operators did."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chokaq.lifecycle.states import Pillar

if TYPE_CHECKING:
    from rich.console import Console

    from chokaq.operations import JobDetail, StoppedJob
    from chokaq.store.claims import ClaimView
    from chokaq.store.records import Attempt, AuditEntry, JobView, Page


def print_page(out: "Console", page: "Page", pillar: Pillar, places: "Sequence[str] | None" = None) -> None:
    """A page of jobs; more columns when there is room. In the DLQ the error, elsewhere who runs it and how long it took.

    `places`: the database of each, where there are several.
    """
    from chokaq.cli.output import WIDE, age, safe, span, state, table

    if not page.jobs:
        out.print(f"No such jobs in the pillar {pillar.value}.")
        return
    stopped, now = pillar == Pillar.DLQ, datetime.now(UTC)
    columns = ["id", "state", *(("~why",) if stopped else ()), "~queue", "~type", ">tries"]
    if places is not None:
        columns.insert(1, "database")
    if out.width >= WIDE:
        columns += (">prio", "~tags", "~error") if stopped else ("worker", ">prio", ">took", "~tags")
    columns.append("when")
    rows = []
    for index, job in enumerate(page.jobs):
        cells = {
            "id": job.id,
            "database": "" if places is None else places[index],
            "state": state(job.status) if stopped else job_state(job, state(job.status)),
            "~why": "" if job.failure_reason is None else job.failure_reason.label,
            "~queue": safe(job.queue),
            "~type": safe(job.type_key),
            ">tries": str(job.attempt_count),
            "worker": safe((job.worker_id or "-")[-8:]),
            ">prio": str(job.priority),
            ">took": span(job.duration_ms),
            "~tags": safe(job.tags or ""),
            "~error": safe(job.error_type or ""),
            "when": age(job.finished_at or job.started_at or job.due_at, now),
        }
        rows.append([cells[column] for column in columns])
    out.print(table(columns, rows))
    print_more(out, page.after)


def print_more(out: "Console", after: str | None) -> None:
    """How to go on, when there is more."""
    if after:
        out.print(f"More: --after {after}", soft_wrap=True)


def job_state(job: "JobView", shown: str) -> str:
    """A state with what belongs to it: the failure reason, or the progress."""
    if job.failure_reason is not None and job.failure_reason.label.lower() != job.status.label.lower():
        return f"{shown} {job.failure_reason.label}"
    if job.progress is not None and not job.status.is_final:
        return f"{shown} {job.progress}%"
    return shown


def print_facts(out: "Console", job: "JobView", *, pretty: bool = False, place: str | None = None) -> None:
    """Everything about one job. `pretty`: the payload over several lines; `place`: its database, where there are several."""
    from rich.table import Table

    from chokaq.cli.output import age, local, safe, span, state

    now = datetime.now(UTC)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")

    def instant(name: str, value: datetime | None) -> None:
        if value is not None:
            facts.add_row(name, f"{local(value)}  ({age(value, now)})")

    facts.add_row("job", job.id)
    facts.add_row("state", f"{job_state(job, state(job.status))} in {job.pillar.value}")
    if place is not None:
        facts.add_row("database", place)
    facts.add_row("queue", safe(job.queue))
    facts.add_row("type", safe(job.type_key))
    facts.add_row("priority", str(job.priority))
    facts.add_row("tries", f"{job.attempt_count} started, {job.crash_count} crashed, lease {job.lease}")
    instant("created", job.created_at)
    instant("due", job.due_at)
    instant("started", job.started_at)
    instant("ended", job.finished_at)
    instant("heartbeat", job.heartbeat_at)
    instant("cancel requested", job.cancel_requested_at)
    for name, value in (
        ("took", None if job.duration_ms is None else span(job.duration_ms)),
        ("worker", job.worker_id),
        ("created by", job.created_by),
        ("login", job.owner_login),
        ("tags", job.tags),
        ("key", None if job.idempotency_key is None else f"{job.idempotency_key} ({job.key_scope.name.lower()})"),
        ("note", job.note),
        ("error", None if job.error_type is None else f"{job.error_type}: {job.error_message or ''}"),
        ("headers", job.headers),
        ("payload", None if pretty else job.payload),
    ):
        if value is not None:
            facts.add_row(name, safe(value))
    if pretty and job.payload is not None:
        facts.add_row("payload", _lines(_pretty(job.payload)))
    out.print(facts)


def print_attempts(out: "Console", attempts: "Sequence[Attempt]", *, traces: int = 0) -> None:
    """The failed attempts, oldest first, and the traces of the last few."""
    from chokaq.cli.output import local, safe, table

    if not attempts:
        return
    rows = [
        (
            local(attempt.at),
            str(attempt.lease),
            attempt.reason.label,
            safe(f"{attempt.error.type}: {attempt.error.message}"),
        )
        for attempt in attempts
    ]
    out.print()
    out.print(table(("when", ">lease", "reason", "~error"), rows, title="Failed attempts"))
    for attempt in attempts[-traces:] if traces else ():
        if attempt.error.trace:
            out.print()
            out.print(f"[bold]Trace of lease {attempt.lease}[/]")
            print_text(out, attempt.error.trace)


def print_audit(out: "Console", audit: "Sequence[AuditEntry]") -> None:
    """What operators did to one job, newest first."""
    from chokaq.cli.output import local, safe, table

    if not audit:
        return
    rows = [(local(entry.at), safe(entry.actor), safe(entry.action), safe(entry.reason or "")) for entry in audit]
    out.print()
    out.print(table(("when", "~who", "what", "~why"), rows, title="What operators did"))


def print_claims(out: "Console", claims: "Sequence[ClaimView]") -> None:
    """The idempotency keys that runs of one job claimed or completed."""
    from chokaq.cli.output import age, local, safe, table

    if not claims:
        return
    now = datetime.now(UTC)
    rows = [
        (
            safe(claim.key),
            claim.state,
            local(claim.done_at or claim.claimed_at),
            "never" if claim.expires_at is None else age(claim.expires_at, now),
            safe(claim.result or ""),
        )
        for claim in claims
    ]
    out.print()
    out.print(table(("~key", "state", "since", "expires", "~result"), rows, title="Idempotency keys"))


def print_text(out: "Console", text: str) -> None:
    """Text of several lines, as it is but for control characters; never as markup."""
    out.print(_lines(text), soft_wrap=True)


def job_json(detail: "JobDetail | StoppedJob", place: str | None = None) -> Any:
    """A job with its history as an object; the JSON in it embedded as it is stored. `place`: as for `print_facts`."""
    from chokaq.cli.output import embed, plain

    answer = plain(detail) | ({} if place is None else {"database": place})
    answer["job"]["payload"] = embed(detail.job.payload)
    answer["job"]["headers"] = embed(detail.job.headers)
    answer["audit"] = audit_json(detail.audit)
    for claim in answer.get("claims", ()):
        claim["result"] = embed(claim["result"])
    return answer


def audit_json(entries: "Sequence[AuditEntry]") -> list[Any]:
    """Audit entries as objects, with what was before and after as JSON."""
    from chokaq.cli.output import plain

    return [{**plain(entry), "before": _embedded(entry.before), "after": _embedded(entry.after)} for entry in entries]


def _lines(text: str) -> str:
    from chokaq.cli.output import safe

    return "\n".join(safe(line.expandtabs(4)) for line in text.splitlines())


def _embedded(text: str | None) -> Any:
    import orjson

    from chokaq.cli.output import embed

    if text is None:
        return None
    try:
        orjson.loads(text)
        return embed(text)
    except orjson.JSONDecodeError:
        return text


def _pretty(payload: str) -> str:
    import msgspec

    try:
        return msgspec.json.format(payload, indent=2)
    except msgspec.DecodeError:
        return payload
