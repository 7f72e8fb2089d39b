"""`python -m chokaq.config.application package.module:attribute`: what an application registers, as one JSON object.

A program of its own, so that a supervisor or a check learns the queues without importing the application: user code never
runs in the process that forks. What the application prints while it is imported goes to stderr.
"""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from chokaq.config.errors import ConfigError


class AppFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an application registers."""

    queues: list[str]
    """Every queue a job type or a pipe goes to, sorted."""
    jobs: dict[str, str] = {}
    """Type key → its queue."""
    priorities: dict[str, int] = {}
    """Type key → the priority its registration gives its jobs."""
    scopes: dict[str, str] = {}
    """Type key → how long an idempotency key answers, for those whose registration says it: active, retained or a duration."""
    handled: list[str] = []
    """Type keys that have a handler."""
    pipes: list[str] = []
    """Queues that are pipes."""
    policies: dict[str, dict[str, object]] = {}
    """Type key (lower case) → the Policy fields that its registration names, for those that name any."""
    strays: list[str] = []
    """One sentence for each handler of a type that is not registered."""
    error: str | None = None
    """Why the application could not be imported."""


def facts_of(app: Any) -> AppFacts:
    """Read an application's registry."""
    registry = app.registry
    return AppFacts(
        queues=sorted(registry.queues),
        jobs={job.type_key: job.queue for job in registry.jobs},
        priorities={job.type_key: job.priority for job in registry.jobs},
        scopes={job.type_key: job.scope_text for job in registry.jobs if job.scope is not None},
        handled=sorted(job.type_key for job in registry.jobs if registry.handler_of(job) is not None),
        pipes=sorted(registry.pipes),
        policies={job.type_key.lower(): dict(job.policy) for job in registry.jobs if job.policy},
        strays=registry.stray_handlers(),
    )


def main() -> None:
    """Write the facts, or the error, to the real stdout."""
    from chokaq.config.importing import load_app

    answer = os.dup(1)
    os.dup2(2, 1)
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        facts = facts_of(load_app(sys.argv[1], folder))
    except ConfigError as error:
        facts = AppFacts(queues=[], error=error.problems[0].message)
    with os.fdopen(answer, "wb") as out:
        out.write(msgspec.json.encode(facts))


if __name__ == "__main__":
    main()
