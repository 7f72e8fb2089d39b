"""`chokaq enqueue`: one job by hand."""

from typing import TYPE_CHECKING, Annotated

import typer

from chokaq.cli.common import Common, who
from chokaq.cli.options import ActorOption, ConfigOption, DatabaseOption, JsonOption
from chokaq.cli.reading import document, instant, seconds

if TYPE_CHECKING:
    from chokaq.config import Settings
    from chokaq.config.application import AppFacts
    from chokaq.jobs.envelope import Scope


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("enqueue")(enqueue)


def enqueue(
    ctx: typer.Context,
    type_key: Annotated[str, typer.Argument(help="The job's type key, e.g. email.send.v1.")],
    payload: Annotated[str, typer.Argument(help="The payload as JSON; `@file` reads a file, `-` stdin.")] = "{}",
    queue: Annotated[
        str | None,
        typer.Option("--queue", "-q", help="Its queue; default: the one the application registers for the type."),
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(help="0 to 1,000,000; higher is served first; default: as registered (with --queue: 10)."),
    ] = None,
    delay: Annotated[str | None, typer.Option(help="Not before this long from now: 90s, 1h30m.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Not before this instant: 2030-01-31T09:00+01:00 (without a zone: local).")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key.")] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            help="How long the key answers: active, retained, or a duration from now; default: as registered."
        ),
    ] = None,
    tags: Annotated[str | None, typer.Option(help="Free text to find the job by.")] = None,
    header: Annotated[list[str] | None, typer.Option("--header", help="NAME=VALUE; repeatable.")] = None,
    actor: ActorOption = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue one job.

    What is not given is as the application registers it. With --queue the application is not imported. The payload is stored as
    it is, either way.
    """
    common = Common.of(ctx, config, database, as_json)
    from chokaq.operations.enqueue import DEFAULT_PRIORITY, enqueue_job, raw_job

    settings = common.settings()
    text = document("PAYLOAD", payload)
    if queue is None:
        facts, known = _facts_of(settings, type_key)
        queue = facts.jobs[known]
        priority = facts.priorities.get(known) if priority is None else priority
        if key is not None and scope is None:
            scope = facts.scopes.get(known)
    job = raw_job(
        type_key,
        text,
        queue=queue,
        max_payload_bytes=settings.envelope.max_payload_bytes,
        priority=DEFAULT_PRIORITY if priority is None else priority,
        delay=None if delay is None else seconds("--delay", delay),
        at=None if at is None else instant("--at", at),
        key=key,
        scope=None if scope is None else _scope(scope),
        tags=tags,
        created_by=who(actor, None).actor,
        headers=dict(_pair(item) for item in header or []),
    )
    with common.databases() as databases:
        _, store, session = databases.of_queue(job.queue)
        answer = enqueue_job(store, session, job)
    if common.as_json:
        from chokaq.cli.output import print_json

        print_json({"queue": job.queue, "type_key": job.type_key, "answer": answer})
    elif answer.created:
        typer.echo(f"{answer.id} enqueued in {job.queue}")
    else:
        differs = ", with another payload" if answer.payload_differs else ""
        typer.echo(
            f"{answer.id} already holds the key {job.idempotency_key} ({answer.status.label}{differs}); nothing enqueued"
        )


def _facts_of(settings: "Settings", type_key: str) -> "tuple[AppFacts, str]":
    """What the application registers, found out in a short-lived process, and the type key as it is written there."""
    if settings.app is None:
        raise typer.BadParameter(
            "is needed, since no application is configured that would tell the queue", param_hint="--queue"
        )
    import difflib

    from chokaq.config.describe import describe_app
    from chokaq.operations.errors import OperationError

    facts = describe_app(settings)
    jobs = facts.jobs
    for key in jobs:
        if key.lower() == type_key.lower():
            return facts, key
    near = difflib.get_close_matches(type_key, jobs, n=1)
    hint = f"did you mean {near[0]}?" if near else "name its --queue to enqueue it all the same"
    raise OperationError(f"the application {settings.app} registers no job type {type_key!r}; {hint}")


def _scope(text: str) -> "Scope":
    if text.lower() in {"active", "retained"}:
        return text.lower()
    from datetime import timedelta

    return timedelta(seconds=seconds("--scope", text))


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise typer.BadParameter(f"must be NAME=VALUE, got {text!r}", param_hint="--header")
    return name, value
