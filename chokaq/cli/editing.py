"""The options that edit a job, and `jobs edit` and `dlq edit`."""

from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.reading import document

if TYPE_CHECKING:
    from chokaq.config import Settings
    from chokaq.lifecycle.states import Pillar
    from chokaq.operations import PayloadCheck
    from chokaq.store.repairs import Edits

PayloadOption = Annotated[
    str | None, typer.Option("--payload", help="Another payload, as JSON; `@file` reads a file, `-` stdin.")
]
TagsOption = Annotated[str | None, typer.Option("--tags", help="Other tags.")]
ClearTagsOption = Annotated[bool, typer.Option("--clear-tags", help="No tags.")]
PriorityOption = Annotated[int | None, typer.Option("--priority", help="0 to 1,000,000; higher is served first.")]
UncheckedOption = Annotated[
    bool, typer.Option("--unchecked", help="Do not hold the payload against the application's contract.")
]


def edits_of(settings: "Settings", payload: str | None, tags: str | None, clear: bool, priority: int | None) -> "Edits":
    """The edits the options name, checked. Raises OperationError or BadParameter."""
    from msgspec import UNSET

    from chokaq.operations.edits import check_edits

    if clear and tags is not None:
        raise typer.BadParameter("--tags are both set and cleared", param_hint="--clear-tags")
    return check_edits(
        payload=UNSET if payload is None else document("--payload", payload),
        tags=None if clear else UNSET if tags is None else tags,
        priority=UNSET if priority is None else priority,
        max_payload_bytes=settings.envelope.max_payload_bytes,
    )


def payload_check(settings: "Settings", unchecked: bool) -> "PayloadCheck | None":
    """The check of a new payload: by the application, when one is configured."""
    from chokaq.operations.contracts import check_apart

    return None if unchecked else check_apart(settings)


def edit(
    common: Common,
    job_id: str,
    edits: "Edits",
    *,
    unchecked: bool,
    within: "Pillar | None",
    actor: str | None,
    reason: str | None,
) -> None:
    """Edit one job and say what came of it."""
    from chokaq.cli.answers import report
    from chokaq.operations.edits import edit_job
    from chokaq.operations.repair import Repaired

    operator, check = who(actor, reason), payload_check(common.settings(), unchecked)
    with common.connected() as (_store, session):
        answer = edit_job(session, job_id, edits, operator, check=check, within=within)
    report(common, Repaired([answer]), "edited")
