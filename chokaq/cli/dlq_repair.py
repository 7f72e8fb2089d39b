"""`chokaq dlq resurrect | edit | drop | purge`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.editing import Edited, edit
from chokaq.cli.options import IdArgument, Operator, Shared, YesOption
from chokaq.cli.selection import Chosen, IdsArgument, Selection, explain, preview_json
from chokaq.cli.spread import spread

if TYPE_CHECKING:
    from chokaq.operations import Action, Opened, Repaired


def register(group: typer.Typer) -> None:
    """Add the commands."""
    group.command("resurrect")(spread(resurrect))
    group.command("edit")(spread(edit_))
    group.command("drop")(spread(drop))
    group.command("purge")(spread(purge))


def resurrect(
    job_ids: IdsArgument = None,
    *,
    changes: Edited,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Leave the idempotency key behind, so that no live job can hold it.")
    ] = False,
    chosen: Chosen,
    operator: Operator,
    yes: YesOption = False,
    common: Shared,
) -> None:
    """Return stopped jobs to Pending, edited on the way if you like: attempts 0, a fresh age, same priority, key and headers.

    By filter, and from 25 jobs on, it has to be confirmed. Exit code 1 when a job could not be.
    """
    from chokaq.operations.confirm import Action
    from chokaq.operations.connect import doorbell
    from chokaq.operations.repair import resurrect_jobs

    selection = Selection.of(job_ids, chosen)
    if changes.payload is not None and not selection.ids:
        raise typer.BadParameter("a payload is for one job: name it by its id", param_hint="--payload")
    settings = common.settings()
    edits, check = changes.edits(settings), changes.check(settings)
    _act(
        common,
        selection,
        Action.RESURRECT,
        "resurrected",
        lambda opened, ids: resurrect_jobs(
            opened.session,
            ids,
            operator,
            edits=edits,
            without_key=without_key,
            check=check,
            ring=doorbell(opened.store),
        ),
        yes=yes,
    )


def edit_(job_id: IdArgument, *, changes: Edited, operator: Operator, common: Shared) -> None:
    """Change a stopped job, which stays in the DLQ (`resurrect` edits and returns it at once). Exit code 1 when it could not."""
    from chokaq.lifecycle.states import Pillar

    edit(common, job_id, changes, operator, within=Pillar.DLQ)


def drop(
    job_ids: IdsArgument = None,
    *,
    chosen: Chosen,
    operator: Operator,
    yes: YesOption = False,
    common: Shared,
) -> None:
    """Decide that stopped jobs never run: they are kept with their failure facts, and there is no way back.

    It needs a reason, and has to be confirmed. Exit code 1 when a job could not be dropped.
    """
    from chokaq.operations.actor import require_reason
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import drop_jobs

    selection = Selection.of(job_ids, chosen)
    require_reason(operator)
    _act(
        common,
        selection,
        Action.DROP,
        "dropped",
        lambda opened, ids: drop_jobs(opened.session, ids, operator),
        yes=yes,
    )


def purge(
    job_ids: IdsArgument = None,
    *,
    chosen: Chosen,
    operator: Operator,
    yes: YesOption = False,
    common: Shared,
) -> None:
    """Delete stopped jobs for good (by id succeeded ones, too); the audit log keeps that they were.

    It has to be confirmed. Exit code 1 when a job could not be purged.
    """
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import purge_jobs

    selection = Selection.of(job_ids, chosen)
    _act(
        common,
        selection,
        Action.PURGE,
        "purged",
        lambda opened, ids: purge_jobs(opened.session, ids, operator),
        yes=yes,
    )


def _act(
    common: Common,
    selection: Selection,
    action: "Action",
    done: str,
    act: "Callable[[Opened, list[str]], Repaired]",
    *,
    yes: bool,
) -> None:
    """Choose the jobs, have the action confirmed, and do it; no connection is held while somebody is asked."""
    from chokaq.cli.answers import report
    from chokaq.cli.confirm import ask
    from chokaq.operations.confirm import confirm_jobs
    from chokaq.operations.jobs import check_ids
    from chokaq.operations.repair import Repaired

    preview, about, chosen = None, [], None
    if selection.ids:
        ids = check_ids(action, selection.ids)
    else:
        with common.databases() as databases:
            opened = databases.one(f"to {action} by filter", selection.words.queue)
            preview = selection.preview(opened.store, opened.session, action)
            chosen = opened.name
        ids, about = preview.ids, explain(preview)
    confirmation = confirm_jobs(
        action, len(ids), by_filter=preview is not None, production=common.settings().production
    )
    ask(confirmation, yes, [*about, f"This will {action} {len(ids):,} {'job' if len(ids) == 1 else 'jobs'}."])
    if ids:
        with common.databases() as databases:
            if chosen is not None:
                repaired = databases.run(chosen, lambda opened: act(opened, ids))
            else:
                repaired = Repaired(
                    databases.each_job(ids, lambda opened, part: act(opened, part).answers, lambda answer: answer.id)
                )
    else:
        repaired = Repaired([])
        if not common.as_json:
            typer.echo("No stopped job matches; nothing was changed.")
    more = {} if preview is None else {"preview": preview_json(preview)}
    report(common, repaired, done, more=more)
