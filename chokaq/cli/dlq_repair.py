"""`chokaq dlq resurrect | edit | drop | purge`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

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
    payload_check,
)
from chokaq.cli.options import ActorOption, ConfigOption, DatabaseOption, JsonOption, ReasonOption, YesOption
from chokaq.cli.selection import (
    AgeFilter,
    AllOption,
    FailureFilter,
    FromFilter,
    IdsArgument,
    MaxOption,
    QueueFilter,
    SearchFilter,
    Selection,
    StatusFilter,
    TagFilter,
    TypeFilter,
    UntilFilter,
    Words,
    explain,
    preview_json,
)

if TYPE_CHECKING:
    from chokaq.operations import Action, Repaired
    from chokaq.store.protocol import Session


def register(group: typer.Typer) -> None:
    """Add the commands."""
    group.command("resurrect")(resurrect)
    group.command("edit")(edit_)
    group.command("drop")(drop)
    group.command("purge")(purge)


def resurrect(
    ctx: typer.Context,
    job_ids: IdsArgument = None,
    payload: PayloadOption = None,
    tags: TagsOption = None,
    clear_tags: ClearTagsOption = False,
    priority: PriorityOption = None,
    unchecked: UncheckedOption = False,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Leave the idempotency key behind, so that no live job can hold it.")
    ] = False,
    queue: QueueFilter = None,
    status: StatusFilter = None,
    type_key: TypeFilter = None,
    failure: FailureFilter = None,
    tag: TagFilter = None,
    search: SearchFilter = None,
    failed_from: FromFilter = None,
    failed_until: UntilFilter = None,
    older_than: AgeFilter = None,
    everything: AllOption = False,
    maximum: MaxOption = 100,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    yes: YesOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Return stopped jobs to Pending, edited on the way if you like: attempts 0, a fresh age, same priority, key and headers.

    By filter, and from 25 jobs on, it has to be confirmed. Exit code 1 when a job could not be.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import resurrect_jobs

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
    selection = Selection.of(job_ids, words, everything, maximum)
    if payload is not None and not selection.ids:
        raise typer.BadParameter("a payload is for one job: name it by its id", param_hint="--payload")
    operator = who(actor, reason)
    edits = edits_of(common.settings(), payload, tags, clear_tags, priority)
    check = payload_check(common.settings(), unchecked)
    _act(
        common,
        selection,
        Action.RESURRECT,
        "resurrected",
        lambda session, ids: resurrect_jobs(session, ids, operator, edits=edits, without_key=without_key, check=check),
        yes=yes,
    )


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
    """Change a stopped job, which stays in the DLQ (`resurrect` edits and returns it at once). Exit code 1 when it could not."""
    common = Common.of(ctx, config, database, as_json)
    from chokaq.lifecycle.states import Pillar

    edits = edits_of(common.settings(), payload, tags, clear_tags, priority)
    edit(common, job_id, edits, unchecked=unchecked, within=Pillar.DLQ, actor=actor, reason=reason)


def drop(
    ctx: typer.Context,
    job_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="1 to 1,000 job ids.")],
    reason: Annotated[str | None, typer.Option("--reason", "-r", help="Why, for the audit log; required.")] = None,
    actor: ActorOption = None,
    yes: YesOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide that stopped jobs never run: they are kept with their failure facts, and there is no way back.

    It has to be confirmed. Exit code 1 when a job could not be dropped.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.actor import require_reason
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import drop_jobs

    operator = who(actor, reason)
    require_reason(operator)
    selection = Selection.of(job_ids, Words(), False, 0)
    _act(common, selection, Action.DROP, "dropped", lambda session, ids: drop_jobs(session, ids, operator), yes=yes)


def purge(
    ctx: typer.Context,
    job_ids: IdsArgument = None,
    queue: QueueFilter = None,
    status: StatusFilter = None,
    type_key: TypeFilter = None,
    failure: FailureFilter = None,
    tag: TagFilter = None,
    search: SearchFilter = None,
    failed_from: FromFilter = None,
    failed_until: UntilFilter = None,
    older_than: AgeFilter = None,
    everything: AllOption = False,
    maximum: MaxOption = 100,
    reason: ReasonOption = None,
    actor: ActorOption = None,
    yes: YesOption = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete stopped jobs for good (by id succeeded ones, too); the audit log keeps that they were.

    It has to be confirmed. Exit code 1 when a job could not be purged.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import purge_jobs

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
    operator = who(actor, reason)
    selection = Selection.of(job_ids, words, everything, maximum)
    _act(common, selection, Action.PURGE, "purged", lambda session, ids: purge_jobs(session, ids, operator), yes=yes)


def _act(
    common: Common,
    selection: Selection,
    action: "Action",
    done: str,
    act: "Callable[[Session, list[str]], Repaired]",
    *,
    yes: bool,
) -> None:
    """Choose the jobs, have the action confirmed, and do it; no connection is held while somebody is asked."""
    from chokaq.cli.answers import report
    from chokaq.cli.confirm import ask
    from chokaq.operations.confirm import confirm_jobs
    from chokaq.operations.jobs import check_ids
    from chokaq.operations.repair import Repaired

    preview, about = None, []
    if selection.ids:
        ids = check_ids(action, selection.ids)
    else:
        with common.connected() as (store, session):
            preview = selection.preview(store, session, action)
        ids, about = preview.ids, explain(preview)
    confirmation = confirm_jobs(
        action, len(ids), by_filter=preview is not None, production=common.settings().production
    )
    ask(confirmation, yes, [*about, f"This will {action} {len(ids):,} {'job' if len(ids) == 1 else 'jobs'}."])
    if ids:
        with common.connected() as (_store, session):
            repaired = act(session, ids)
    else:
        repaired = Repaired([])
        if not common.as_json:
            typer.echo("No stopped job matches; nothing was changed.")
    more = {} if preview is None else {"preview": preview_json(preview)}
    report(common, repaired, done, more=more)
