"""`chokaq dlq list | show | preview`: looking at what stopped. What repairs it is registered beside."""

from enum import StrEnum
from typing import Annotated

import typer

from chokaq.cli import dlq_repair
from chokaq.cli.options import AfterOption, IdArgument, LimitOption, Shared
from chokaq.cli.selection import Filter, MaxOption, explain, preview_json
from chokaq.cli.spread import spread

SHOWN_TRACES = 3


class For(StrEnum):
    """Actions a preview can be asked for."""

    RESURRECT = "resurrect"
    DROP = "drop"
    PURGE = "purge"


def register(program: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at jobs that stopped, and repair them.")
    group.command("list")(spread(list_))
    group.command("show")(spread(show))
    group.command("preview")(spread(preview))
    dlq_repair.register(group)
    program.add_typer(group, name="dlq")


def list_(words: Filter, limit: LimitOption = 50, after: AfterOption = None, *, common: Shared) -> None:
    """List the DLQ, newest first by id. A cursor goes on with the filter it came with."""
    from chokaq.cli.output import console, print_json, with_places
    from chokaq.cli.tables import print_page
    from chokaq.lifecycle.states import Pillar
    from chokaq.operations.filters import SEARCHED
    from chokaq.operations.jobs import bound_of, list_stopped, merge_pages
    from chokaq.store.records import Page

    places: list[str] | None
    with common.databases() as databases:
        if databases.several and words.queue is None:
            where = words.read(databases.open(databases.names[0]).store)
            pages = databases.all(
                lambda opened: list_stopped(opened.session, where, limit, after, older_than=words.age)
            )
            merged = merge_pages(pages, limit, bound_of(where, words.age))
            page, places = Page([job for _, job in merged.jobs], merged.after), [name for name, _ in merged.jobs]
        else:
            opened = databases.one("this list", words.queue)
            page = list_stopped(opened.session, words.read(opened.store), limit, after, older_than=words.age)
            places = [opened.name] * len(page.jobs) if databases.several else None
    if common.as_json:
        looked = {} if words.search is None else {"searched": SEARCHED}
        print_json({"jobs": with_places(page.jobs, places), "after": page.after, **looked})
        return
    out = console()
    print_page(out, page, Pillar.DLQ, places)
    if words.search is not None:
        out.print(f"Searched: the newest {SEARCHED:,} jobs that fit the rest of the filter.")


def show(job_id: IdArgument, *, common: Shared) -> None:
    """Show one stopped job: what failed and how, what operators did, and what a resurrection would risk."""
    from chokaq.cli.output import console, print_json
    from chokaq.cli.tables import job_json, print_attempts, print_audit, print_facts, print_text
    from chokaq.operations.jobs import check_id
    from chokaq.operations.risks import show_stopped

    with common.databases() as databases:
        opened = databases.holding(check_id(job_id))
        found = databases.run(opened.name, lambda opened: show_stopped(opened.session, job_id, opened.store.now()))
        place = opened.name if databases.several else None
    if common.as_json:
        print_json(job_json(found, place))
        return
    out = console()
    print_facts(out, found.job, pretty=True, place=place)
    print_attempts(out, found.attempts, traces=SHOWN_TRACES)
    print_audit(out, found.audit)
    out.print()
    out.print("[bold]What a resurrection would risk[/]")
    for risk in found.risks or ["Nothing that is known."]:
        print_text(out, f"- {risk}")


def preview(
    words: Filter,
    action: Annotated[
        For | None,
        typer.Option("--for", help="What this action would touch: resurrections and drops leave out dropped jobs."),
    ] = None,
    maximum: MaxOption = 100,
    *,
    common: Shared,
) -> None:
    """Count the stopped jobs a filter means, and name the newest. An action judges each of them anew."""
    from chokaq.operations.confirm import Action
    from chokaq.operations.repair import preview_jobs

    with common.databases() as databases:
        opened = databases.one("a preview", words.queue)
        meant = None if action is None else Action(action)
        found = preview_jobs(opened.session, words.read(opened.store), meant, maximum)
    if common.as_json:
        from chokaq.cli.output import print_json

        print_json(preview_json(found))
    else:
        for line in explain(found):
            typer.echo(line)
