"""The options that edit a job, and `jobs edit` and `dlq edit`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common
from chokaq.cli.reading import document
from chokaq.cli.spread import Spread

if TYPE_CHECKING:
    from chokaq.config import Settings
    from chokaq.lifecycle.states import Pillar
    from chokaq.operations import By, PayloadCheck
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


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What the options change in a job."""

    payload: PayloadOption = None
    tags: TagsOption = None
    clear_tags: ClearTagsOption = False
    priority: PriorityOption = None
    unchecked: UncheckedOption = False

    def edits(self, settings: "Settings") -> "Edits":
        """The edits, checked. Raises OperationError or BadParameter."""
        from msgspec import UNSET

        from chokaq.operations.edits import check_edits

        if self.clear_tags and self.tags is not None:
            raise typer.BadParameter("--tags are both set and cleared", param_hint="--clear-tags")
        return check_edits(
            payload=UNSET if self.payload is None else document("--payload", self.payload),
            tags=None if self.clear_tags else UNSET if self.tags is None else self.tags,
            priority=UNSET if self.priority is None else self.priority,
            max_payload_bytes=settings.envelope.max_payload_bytes,
        )

    def check(self, settings: "Settings") -> "PayloadCheck | None":
        """The check of a new payload: by the application, when one is configured."""
        from chokaq.operations.contracts import check_apart

        return None if self.unchecked else check_apart(settings)


Edited = Annotated[Changes, Spread(Changes)]
"""The options that edit a job."""


def edit(common: Common, job_id: str, changes: Changes, operator: "By", *, within: "Pillar | None") -> None:
    """Edit one job and say what came of it. `within`: the only pillar it may stand in; None: any."""
    from chokaq.cli.answers import report
    from chokaq.operations.edits import edit_job
    from chokaq.operations.jobs import check_id
    from chokaq.operations.repair import Repaired

    settings = common.settings()
    edits, check = changes.edits(settings), changes.check(settings)
    wanted = check_id(job_id)
    with common.databases() as databases:
        opened = databases.holding(wanted)
        answer = edit_job(opened.session, wanted, edits, operator, check=check, within=within)
    report(common, Repaired([answer]), "edited")
