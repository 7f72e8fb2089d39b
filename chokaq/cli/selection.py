"""Which stopped jobs a command is about: those it names, or those a filter means."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.reading import instant, seconds
from chokaq.cli.spread import Spread

if TYPE_CHECKING:
    from chokaq.operations import Preview
    from chokaq.operations.confirm import Action
    from chokaq.store.protocol import Session, Store
    from chokaq.store.repairs import DlqFilter

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="1 to 1,000 job ids; or a filter.")]
QueueFilter = Annotated[str | None, typer.Option("--queue", "-q", help="Only this queue.")]
TypeFilter = Annotated[str | None, typer.Option("--type", "-t", help="Only this type key.")]
FailureFilter = Annotated[str | None, typer.Option("--failure", help="Only this failure reason, e.g. FatalError.")]
StatusFilter = Annotated[str | None, typer.Option("--status", "-s", help="Failed, Cancelled, Zombie or Dropped.")]
TagFilter = Annotated[str | None, typer.Option("--tag", help="Only jobs whose tags contain this text.")]
SearchFilter = Annotated[
    str | None, typer.Option("--search", help="Only jobs that hold this text; looks at the newest 10,000.")
]
FromFilter = Annotated[str | None, typer.Option("--failed-from", metavar="INSTANT", help="Stopped then or later.")]
UntilFilter = Annotated[str | None, typer.Option("--failed-until", metavar="INSTANT", help="Stopped before then.")]
AgeFilter = Annotated[str | None, typer.Option("--older-than", metavar="AGE", help="Stopped longer ago: 12h, 30d.")]
MaxOption = Annotated[int, typer.Option("--max", help="By filter: the newest so many at most, 1 to 1,000.")]
AllOption = Annotated[bool, typer.Option("--all", help="Instead of a filter: whatever stands in the DLQ.")]


@dataclass(frozen=True, kw_only=True)
class Words:
    """A filter as it was typed."""

    queue: QueueFilter = None
    status: StatusFilter = None
    type_key: TypeFilter = None
    failure: FailureFilter = None
    tag: TagFilter = None
    search: SearchFilter = None
    failed_from: FromFilter = None
    failed_until: UntilFilter = None
    older_than: AgeFilter = None

    @property
    def given(self) -> bool:
        """True when at least one criterion is named."""
        return self != Words()

    @property
    def age(self) -> float | None:
        """`--older-than` in seconds. Raises BadParameter."""
        return None if self.older_than is None else seconds("--older-than", self.older_than)

    def read(self, store: "Store") -> "DlqFilter":
        """The filter; an age counts back from the database's clock. Raises OperationError or BadParameter."""
        from chokaq.operations.filters import dlq_filter

        older_than = self.age
        return dlq_filter(
            queue=self.queue,
            type_key=self.type_key,
            reason=self.failure,
            status=self.status,
            tag=self.tag,
            search=self.search,
            failed_from=None if self.failed_from is None else instant("--failed-from", self.failed_from),
            failed_until=None if self.failed_until is None else instant("--failed-until", self.failed_until),
            older_than=older_than,
            now=None if older_than is None else store.now(),
        )


@dataclass(frozen=True, kw_only=True)
class Selectors(Words):
    """How jobs were chosen on the command line: a filter, or everything, and how many at most."""

    everything: AllOption = False
    maximum: MaxOption = 100

    @property
    def words(self) -> Words:
        """The filter alone."""
        return Words(**{field.name: getattr(self, field.name) for field in fields(Words)})


Filter = Annotated[Words, Spread(Words)]
"""The options of a filter."""
Chosen = Annotated[Selectors, Spread(Selectors)]
"""The options of a filter that an action takes."""


@dataclass(frozen=True)
class Selection:
    """Jobs named, or a filter; never both, never neither."""

    ids: list[str]
    words: Words
    maximum: int

    @classmethod
    def of(cls, ids: list[str] | None, chosen: Selectors) -> "Selection":
        """Raises BadParameter unless exactly one of ids, filter and --all is given."""
        ways = sum((bool(ids), chosen.words.given, chosen.everything))
        if ways == 0:
            raise typer.BadParameter("name jobs by their ids, or a filter (--queue, --failure, …), or --all")
        if ways > 1:
            raise typer.BadParameter("name either jobs by their ids, or a filter, or --all")
        return cls(ids or [], chosen.words, chosen.maximum)

    def preview(self, store: "Store", session: "Session", action: "Action") -> "Preview":
        """What the filter means at this moment."""
        from chokaq.operations.repair import preview_jobs

        return preview_jobs(session, self.words.read(store), action, self.maximum)


def explain(preview: "Preview") -> list[str]:
    """A preview in sentences."""
    further = " There may be more: it looked no further." if preview.more else ""
    lines = [f"{preview.matched:,} {'job matches' if preview.matched == 1 else 'jobs match'}.{further}"]
    if preview.truncated:
        lines.append(f"Only the newest {preview.affected:,} are touched at once (--max).")
    if preview.sample:
        lines.append("The newest: " + ", ".join(preview.sample))
    return lines


def preview_json(preview: "Preview") -> dict[str, object]:
    """A preview as an object."""
    return {
        "action": preview.action,
        "matched": preview.matched,
        "more": preview.more,
        "maximum": preview.maximum,
        "affected": preview.affected,
        "truncated": preview.truncated,
        "sample": preview.sample,
    }
