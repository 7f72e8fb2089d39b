"""`chokaq dlq list | show | preview`: looking at what stopped. What repairs it is registered beside."""

from enum import StrEnum
from typing import Annotated

import typer

from chokaq.cli import dlq_repair
from chokaq.cli.common import Common
from chokaq.cli.options import AfterOption, ConfigOption, DatabaseOption, JsonOption, LimitOption
from chokaq.cli.selection import (
    AgeFilter,
    FailureFilter,
    FromFilter,
    MaxOption,
    QueueFilter,
    SearchFilter,
    StatusFilter,
    TagFilter,
    TypeFilter,
    UntilFilter,
    Words,
    explain,
    preview_json,
)

SHOWN_TRACES = 3


class For(StrEnum):
    """Actions a preview can be asked for."""

    RESURRECT = "resurrect"
    PURGE = "purge"


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at jobs that stopped, and repair them.")
    group.command("list")(list_)
    group.command("show")(show)
    group.command("preview")(preview)
    dlq_repair.register(group)
    program.add_typer(group, name="dlq")


def list_(
    ctx: typer.Context,
    queue: QueueFilter = None,
    status: StatusFilter = None,
    type_key: TypeFilter = None,
    failure: FailureFilter = None,
    tag: TagFilter = None,
    limit: LimitOption = 50,
    after: AfterOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the DLQ, newest first. `preview` searches by text and time."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import print_page
    from chokaq.operations.filters import job_filter
    from chokaq.operations.jobs import list_jobs

    where = job_filter(pillar="dlq", queue=queue, status=status, type_key=type_key, reason=failure, tag=tag)
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
    """Show one stopped job: what failed and how, what operators did, and what a resurrection would risk."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import job_json, print_attempts, print_audit, print_facts, print_text
    from chokaq.operations.risks import show_stopped

    with common.connected() as (store, session):
        found = show_stopped(session, job_id, store.now())
    if common.as_json:
        print_json(job_json(found))
        return
    out = console()
    print_facts(out, found.job, pretty=True)
    print_attempts(out, found.attempts, traces=SHOWN_TRACES)
    print_audit(out, found.audit)
    out.print()
    out.print("[bold]What a resurrection would risk[/]")
    for risk in found.risks or ["Nothing that is known."]:
        print_text(out, f"- {risk}")


def preview(
    ctx: typer.Context,
    queue: QueueFilter = None,
    status: StatusFilter = None,
    type_key: TypeFilter = None,
    failure: FailureFilter = None,
    tag: TagFilter = None,
    search: SearchFilter = None,
    failed_from: FromFilter = None,
    failed_until: UntilFilter = None,
    older_than: AgeFilter = None,
    action: Annotated[
        For | None, typer.Option("--for", help="What this action would touch: a resurrection leaves out dropped jobs.")
    ] = None,
    maximum: MaxOption = 100,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the stopped jobs a filter means, and name the newest. An action judges each of them anew."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import preview_jobs

    words = Words(
        queue=queue,
        type_key=type_key,
        failure=failure,
        status=status,
        tag=tag,
        search=search,
        failed_from=failed_from,
        failed_until=failed_until,
        older_than=older_than,
    )
    with common.connected() as (store, session):
        found = preview_jobs(session, words.read(store), None if action is None else Action(action), maximum)
    if common.as_json:
        from chokaq.cli.output import print_json

        print_json(preview_json(found))
    else:
        for line in explain(found):
            typer.echo(line)
