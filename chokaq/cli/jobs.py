"""`chokaq jobs list | show | edit | cancel`."""

from typing import Annotated

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.editing import (
    ClearTagsOption,
    PayloadOption,
    PriorityOption,
    TagsOption,
    UncheckedOption,
    edit,
    edits_of,
)
from chokaq.cli.exits import Exit
from chokaq.cli.options import (
    ActorOption,
    AfterOption,
    ConfigOption,
    DatabaseOption,
    JsonOption,
    LimitOption,
    ReasonOption,
    YesOption,
)
from chokaq.cli.selection import FailureFilter, QueueFilter, TagFilter, TypeFilter

_REFUSALS = {"final": "has already ended; unchanged", "unknown": "does not exist here"}
_DONE = {"cancelled": "cancelled", "requested": "is running and will be told"}


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at jobs, edit and cancel them.")
    group.command("list")(list_)
    group.command("show")(show)
    group.command("edit")(edit_)
    group.command("cancel")(cancel)
    program.add_typer(group, name="jobs")


def list_(
    ctx: typer.Context,
    pillar: Annotated[str | None, typer.Option("--pillar", "-p", help="hot (default), archive or dlq.")] = None,
    queue: QueueFilter = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", "-s", help="Pending, Fetched, Processing, Succeeded, Failed, Cancelled, Zombie, Dropped."
        ),
    ] = None,
    type_key: TypeFilter = None,
    failure: FailureFilter = None,
    tag: TagFilter = None,
    limit: LimitOption = 50,
    after: AfterOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List one pillar, newest first. A status or a failure reason decides the pillar."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import print_page
    from chokaq.operations.filters import job_filter
    from chokaq.operations.jobs import list_jobs

    where = job_filter(pillar=pillar, queue=queue, status=status, type_key=type_key, reason=failure, tag=tag)
    with common.connected() as (_store, session):
        page = list_jobs(session, where, limit, after)
    if common.as_json:
        print_json(page)
    else:
        print_page(console(), page, where.pillar)


def show(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one job from any pillar: payload, failed attempts, idempotency keys, and what operators did to it."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import job_json, print_attempts, print_audit, print_claims, print_facts
    from chokaq.operations.jobs import show_job

    with common.connected() as (_store, session):
        detail = show_job(session, job_id)
    if common.as_json:
        print_json(job_json(detail))
        return
    out = console()
    print_facts(out, detail.job)
    print_attempts(out, detail.attempts)
    print_claims(out, detail.claims)
    print_audit(out, detail.audit)


def edit_(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    payload: PayloadOption = None,
    tags: TagsOption = None,
    clear_tags: ClearTagsOption = False,
    priority: PriorityOption = None,
    unchecked: UncheckedOption = False,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a job that is Pending or has stopped, where it stands. Exit code 1 when it is neither."""
    common = Common.of(ctx, config, database, as_json)
    edits = edits_of(common.settings(), payload, tags, clear_tags, priority)
    edit(common, job_id, edits, unchecked=unchecked, within=None, actor=actor, reason=reason)


def cancel(
    ctx: typer.Context,
    job_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="1 to 1,000 job ids.")],
    reason: ReasonOption = None,
    actor: ActorOption = None,
    yes: YesOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel jobs. One that waits is cancelled at once; one that runs is told. Exit code 1 when one could not be.

    From 25 jobs on it has to be confirmed.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.confirm import ask
    from chokaq.cli.output import print_json
    from chokaq.operations.confirm import Action, confirm_jobs
    from chokaq.operations.jobs import cancel_jobs, check_ids

    operator, wanted = who(actor, reason), check_ids("cancel", job_ids)
    confirmation = confirm_jobs(Action.CANCEL, len(wanted), production=common.settings().production)
    ask(confirmation, yes, [f"This cancels {len(wanted):,} jobs, those that run, too."])
    with common.connected() as (_store, session):
        answers = cancel_jobs(session, wanted, operator)
    if common.as_json:
        print_json({"jobs": answers})
    else:
        for answer in answers:
            typer.echo(f"{answer.id} {(_DONE | _REFUSALS)[answer.result]}", err=answer.result in _REFUSALS)
    if any(answer.result in _REFUSALS for answer in answers):
        raise typer.Exit(Exit.PROBLEM)
