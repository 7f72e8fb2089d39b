"""One log line for every command of an operator, whoever gave it (the audit log holds what was carried out, for ever)."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import structlog

from chokaq.observe.levels import is_heard
from chokaq.operations.actor import By
from chokaq.operations.errors import NotAllowed, OperationError

_log = structlog.get_logger("chokaq")
P = ParamSpec("P")
R = TypeVar("R")


def command(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes an operation of the form (session, target, …, who: By, …) tell that it was carried out, or refused and why.

    A viewer's attempt is told by The Deck itself, where alone there are viewers.
    """

    def decorate(operation: Callable[P, R]) -> Callable[P, R]:
        @wraps(operation)
        def told(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                answer = operation(*args, **kwargs)
            except NotAllowed:
                raise
            except OperationError as error:
                if is_heard():
                    about = _about(args, kwargs)
                    _log.warning("command_rejected", command=name, **about, problem=str(error))
                raise
            if is_heard():
                _log.info("command_completed", command=name, **_about(args, kwargs), **_counts(answer))
            return answer

        return told

    return decorate


def _counts(answer: object) -> dict[str, int]:
    """How many jobs were accepted or refused, where the answer tells."""
    counts: dict[str, int] = getattr(answer, "counts", {})
    return {kind: count for kind, count in counts.items() if count}


def _about(args: Sequence[object], kwargs: dict[str, object]) -> dict[str, object]:
    """What it was done to, by whom and why."""
    who = next((given for given in (*args, *kwargs.values()) if isinstance(given, By)), None)
    target = args[1] if len(args) > 1 and not isinstance(args[1], By) else None
    about: dict[str, object] = {}
    if isinstance(target, str):
        about["target"] = target
    elif isinstance(target, Sequence):
        about["targets"] = len(target)
        if target:
            about["target"] = target[0]
    if who is not None:
        about["actor"] = who.actor
        if who.reason is not None:
            about["why"] = who.reason
    return about
