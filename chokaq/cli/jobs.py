"""`chokaq jobs list | show | cancel`."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.exits import Exit
from chokaq.cli.options import ActorOption, ConfigOption, DatabaseOption, JsonOption, ReasonOption

if TYPE_CHECKING:
    from rich.console import Console

    from chokaq.operations import JobDetail
    from chokaq.store.records import JobView, Page

_REFUSALS = {"final": "has already ended; unchanged", "unknown": "does not exist here"}
_DONE = {"cancelled": "cancelled", "requested": "is running and will be told"}


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at jobs and cancel them.")
    group.command("list")(list_)
    group.command("show")(show)
    group.command("cancel")(cancel)
    program.add_typer(group, name="jobs")


def list_(
    ctx: typer.Context,
    pillar: Annotated[str | None, typer.Option("--pillar", "-p", help="hot (default), archive or dlq.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Only this queue.")] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", "-s", help="Pending, Fetched, Processing, Succeeded, Failed, Cancelled, Zombie, Dropped."
        ),
    ] = None,
    type_key: Annotated[str | None, typer.Option("--type", "-t", help="Only this type key.")] = None,
    failure: Annotated[str | None, typer.Option("--failure", help="Only this failure reason, e.g. FatalError.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only jobs whose tags contain this text.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="1 to 500.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Go on behind this job.")] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List one pillar, newest first. A status or a failure reason decides the pillar."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.jobs import job_filter, list_jobs

    where = job_filter(pillar=pillar, queue=queue, status=status, type_key=type_key, reason=failure, tag=tag)
    with common.connected() as (_store, session):
        page = list_jobs(session, where, limit, after)
    from chokaq.cli.output import console, print_json

    if common.as_json:
        print_json(page)
    else:
        _print_page(console(), page, where.pillar.value)


def _print_page(out: "Console", page: "Page", pillar: str) -> None:
    from chokaq.cli.output import WIDE, age, safe, span, state, table

    if not page.jobs:
        out.print(f"No such jobs in the pillar {pillar}.")
        return
    wide, now = out.width >= WIDE, datetime.now(UTC)
    rows = []
    for job in page.jobs:
        rare = (safe((job.worker_id or "-")[-8:]), str(job.priority), span(job.duration_ms), safe(job.tags or ""))
        rows.append(
            (
                job.id,
                _state(job, state(job.status)),
                safe(job.queue),
                safe(job.type_key),
                str(job.attempt_count),
                *(rare if wide else ()),
                age(job.finished_at or job.started_at or job.due_at, now),
            )
        )
    columns = (
        "id",
        "state",
        "~queue",
        "~type",
        ">tries",
        *(("worker", ">prio", ">took", "~tags") if wide else ()),
        "when",
    )
    out.print(table(columns, rows))
    if page.after:
        out.print(f"More: --after {page.after}")


def _state(job: "JobView", shown: str) -> str:
    if job.failure_reason is not None and job.failure_reason.label.lower() != job.status.label.lower():
        return f"{shown} {job.failure_reason.label}"
    if job.progress is not None and not job.status.is_final:
        return f"{shown} {job.progress}%"
    return shown


def show(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one job from any pillar: payload, failed attempts, idempotency keys, and what operators did to it."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.jobs import show_job

    with common.connected() as (_store, session):
        detail = show_job(session, job_id)
    from chokaq.cli.output import console, embed, plain, print_json

    if common.as_json:
        answer = plain(detail)
        answer["job"]["payload"] = embed(detail.job.payload)
        answer["job"]["headers"] = embed(detail.job.headers)
        for claim, shown in zip(detail.claims, answer["claims"], strict=True):
            shown["result"] = embed(claim.result)
        print_json(answer)
    else:
        _print_detail(console(), detail)


def _print_detail(out: "Console", detail: "JobDetail") -> None:
    from rich.table import Table

    from chokaq.cli.output import age, local, safe, span, state, table

    job, now = detail.job, datetime.now(UTC)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")

    def instant(name: str, value: datetime | None) -> None:
        if value is not None:
            facts.add_row(name, f"{local(value)}  ({age(value, now)})")

    facts.add_row("job", job.id)
    facts.add_row("state", f"{_state(job, state(job.status))} in {job.pillar.value}")
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
        ("payload", job.payload),
    ):
        if value is not None:
            facts.add_row(name, safe(value))
    out.print(facts)
    if detail.attempts:
        attempts = [
            (
                local(attempt.at),
                str(attempt.lease),
                attempt.reason.label,
                safe(f"{attempt.error.type}: {attempt.error.message}"),
            )
            for attempt in detail.attempts
        ]
        out.print()
        out.print(table(("when", ">lease", "reason", "~error"), attempts, title="Failed attempts"))
    if detail.claims:
        claims = [
            (
                safe(claim.key),
                claim.state,
                local(claim.done_at or claim.claimed_at),
                "never" if claim.expires_at is None else age(claim.expires_at, now),
                safe(claim.result or ""),
            )
            for claim in detail.claims
        ]
        out.print()
        out.print(table(("~key", "state", "since", "expires", "~result"), claims, title="Idempotency keys"))
    if detail.audit:
        audit = [
            (local(entry.at), safe(entry.actor), safe(entry.action), safe(entry.reason or "")) for entry in detail.audit
        ]
        out.print()
        out.print(table(("when", "~who", "what", "~why"), audit, title="What operators did"))


def cancel(
    ctx: typer.Context,
    job_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="1 to 1,000 job ids.")],
    reason: ReasonOption = None,
    actor: ActorOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel jobs. One that waits is cancelled at once; one that runs is told. Exit code 1 when one could not be."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import print_json
    from chokaq.operations.jobs import cancel_jobs

    operator = who(actor, reason)
    with common.connected() as (_store, session):
        answers = cancel_jobs(session, job_ids, operator)
    if common.as_json:
        print_json({"jobs": answers})
    else:
        for answer in answers:
            typer.echo(f"{answer.id} {(_DONE | _REFUSALS)[answer.result]}", err=answer.result in _REFUSALS)
    if any(answer.result in _REFUSALS for answer in answers):
        raise typer.Exit(Exit.PROBLEM)
