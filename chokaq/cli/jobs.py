"""`chokaq jobs list | show | edit | cancel`."""

from typing import Annotated

import typer

from chokaq.cli.editing import Edited, edit
from chokaq.cli.exits import Exit
from chokaq.cli.options import AfterOption, IdArgument, LimitOption, Operator, Shared, YesOption
from chokaq.cli.selection import FailureFilter, QueueFilter, TagFilter, TypeFilter
from chokaq.cli.spread import spread

_REFUSALS = {"final": "has already ended; unchanged", "unknown": "does not exist here"}
_DONE = {"cancelled": "cancelled", "requested": "is running and will be told"}


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at jobs, edit and cancel them.")
    group.command("list")(spread(list_))
    group.command("show")(spread(show))
    group.command("edit")(spread(edit_))
    group.command("cancel")(spread(cancel))
    program.add_typer(group, name="jobs")


def list_(
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
    *,
    common: Shared,
) -> None:
    """List one pillar, newest first. A status or a failure reason decides the pillar."""
    from chokaq.cli.output import console, print_json, with_places
    from chokaq.cli.tables import print_page
    from chokaq.operations.filters import job_filter
    from chokaq.operations.jobs import list_jobs, merge_pages
    from chokaq.store.records import Page

    where = job_filter(pillar=pillar, queue=queue, status=status, type_key=type_key, reason=failure, tag=tag)
    places: list[str] | None
    with common.databases() as databases:
        if databases.several and queue is None:
            merged = merge_pages(
                databases.all(lambda opened: list_jobs(opened.session, where, limit, after)), limit, where
            )
            page, places = Page([job for _, job in merged.jobs], merged.after), [name for name, _ in merged.jobs]
        else:
            opened = databases.one("this list", queue)
            page = list_jobs(opened.session, where, limit, after)
            places = [opened.name] * len(page.jobs) if databases.several else None
    if common.as_json:
        print_json({"jobs": with_places(page.jobs, places), "after": page.after})
    else:
        print_page(console(), page, where.pillar, places)


def show(job_id: IdArgument, *, common: Shared) -> None:
    """Show one job from any pillar: payload, failed attempts, idempotency keys, and what operators did to it."""
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import job_json, print_attempts, print_audit, print_claims, print_facts
    from chokaq.operations.jobs import check_id, show_job

    with common.databases() as databases:
        opened = databases.holding(check_id(job_id))
        detail = databases.run(opened.name, lambda opened: show_job(opened.session, job_id))
        place = opened.name if databases.several else None
    if common.as_json:
        print_json(job_json(detail, place))
        return
    out = console()
    print_facts(out, detail.job, place=place)
    print_attempts(out, detail.attempts)
    print_claims(out, detail.claims)
    print_audit(out, detail.audit)


def edit_(job_id: IdArgument, *, changes: Edited, operator: Operator, common: Shared) -> None:
    """Change a job that is Pending or has stopped, where it stands. Exit code 1 when it is neither."""
    edit(common, job_id, changes, operator, within=None)


def cancel(
    job_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="1 to 1,000 job ids.")],
    *,
    operator: Operator,
    yes: YesOption = False,
    common: Shared,
) -> None:
    """Cancel jobs. One that waits is cancelled at once; one that runs is told. Exit code 1 when one could not be.

    From 25 jobs on it has to be confirmed.
    """
    from chokaq.cli.confirm import ask
    from chokaq.cli.output import print_json
    from chokaq.operations.confirm import Action, confirm_jobs
    from chokaq.operations.jobs import cancel_jobs, check_ids

    wanted = check_ids("cancel", job_ids)
    confirmation = confirm_jobs(Action.CANCEL, len(wanted), production=common.settings().production)
    ask(confirmation, yes, [f"This cancels {len(wanted):,} jobs, those that run, too."])
    with common.databases() as databases:
        answers = databases.each_job(
            wanted, lambda opened, ids: cancel_jobs(opened.session, ids, operator), lambda answer: answer.id
        )
    if common.as_json:
        print_json({"jobs": answers})
    else:
        for answer in answers:
            typer.echo(f"{answer.id} {(_DONE | _REFUSALS)[answer.result]}", err=answer.result in _REFUSALS)
    if any(answer.result in _REFUSALS for answer in answers):
        raise typer.Exit(Exit.PROBLEM)
