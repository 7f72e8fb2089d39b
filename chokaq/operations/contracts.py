"""Does a payload fit the contract that the application registers for its job?

Whoever holds the application asks `fits`. The CLI does not import it: `python -m chokaq.operations.contracts` does, in a process
of its own, so that what the application prints or starts on import stays out of the command.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from chokaq.config.errors import ConfigError, Problem
from chokaq.operations.errors import OperationError

if TYPE_CHECKING:
    from chokaq.config.settings import Settings
    from chokaq.jobs.registry import Registry
    from chokaq.operations.edits import PayloadCheck
    from chokaq.store.records import JobView

IMPORT_SECONDS = 120.0
"""An application that takes longer to import than this is taken for one that hangs."""


class Question(msgspec.Struct, frozen=True):
    """A payload and the job it is for."""

    queue: str
    type_key: str
    payload: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it fits."""

    problem: str | None = None
    """Why it does not; None: it fits."""
    import_error: str | None = None
    """Why the application could not be imported."""


def fits(registry: "Registry", question: Question) -> Verdict:
    """Hold a payload against the contract of its type; in a pipe every JSON fits."""
    from chokaq.jobs.codec import decode
    from chokaq.lifecycle.errors import PayloadError

    if question.queue in registry.pipes:
        return Verdict()
    job = registry.find(question.type_key)
    if job is None:
        return Verdict(problem=f"the application registers no job type {question.type_key!r} to check the payload by")
    try:
        decode(job.contract, question.payload, job.type_key)
    except PayloadError as error:
        return Verdict(problem=str(error))
    return Verdict()


def check_by(registry: "Registry") -> "PayloadCheck":
    """A check for whoever holds the application."""

    def check(job: "JobView", payload: str) -> None:
        _judge(fits(registry, Question(job.queue, job.type_key, payload)))

    return check


def check_apart(settings: "Settings") -> "PayloadCheck | None":
    """A check that imports the configured application in a process of its own; None when none is configured.

    It raises ConfigError when the application cannot be imported.
    """
    app = settings.app
    if app is None:
        return None

    def check(job: "JobView", payload: str) -> None:
        verdict = _ask(app, settings, Question(job.queue, job.type_key, payload))
        if verdict.import_error is not None:
            raise _error(settings, verdict.import_error)
        _judge(verdict)

    return check


def _judge(verdict: Verdict) -> None:
    if verdict.problem is not None:
        raise OperationError(f"{verdict.problem}; nothing was changed")


def _ask(app: str, settings: "Settings", question: Question) -> Verdict:
    folder = [] if settings.source is None else [str(settings.source.parent)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "chokaq.operations.contracts", app, *folder],
            input=msgspec.json.encode(question),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)},
            timeout=IMPORT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _error(settings, f"importing {app} took longer than {IMPORT_SECONDS:g} s") from None
    except OSError as error:
        raise _error(settings, f"no process could be started to import {app}: {error}") from None
    try:
        return msgspec.json.decode(done.stdout, type=Verdict)
    except msgspec.DecodeError:
        code = done.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise _error(settings, f"importing {app} ended the process with {how}") from None


def _error(settings: "Settings", message: str) -> ConfigError:
    return ConfigError([Problem("app", message)], None if settings.source is None else str(settings.source))


def main() -> None:
    """Answer the question on stdin with a verdict on the real stdout; what the application prints goes to stderr."""
    from chokaq.config.importing import load_app

    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        app = load_app(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    except ConfigError as error:
        verdict = Verdict(import_error=error.problems[0].message)
    else:
        verdict = fits(app.registry, question)
    with os.fdopen(answer, "wb") as out:
        out.write(msgspec.json.encode(verdict))


if __name__ == "__main__":
    main()
