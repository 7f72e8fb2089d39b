"""A handler as chokaq sees it: which arguments it wants, and whether it is a coroutine function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from chokaq.jobs.context import JobContext
from chokaq.jobs.errors import RegistrationError

_CONTEXT_NAMES = ("ctx", "context", "_ctx", "_context", "_")


@dataclass(frozen=True, slots=True)
class Service:
    """A parameter that the service registry fills."""

    name: str
    type: Any
    optional: bool
    """It has a default, which stands when the registry does not know the type."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to call a handler: leading values, then the context when it wants one, then services by name."""

    function: Callable[..., Any]
    is_sync: bool
    context_name: str | None
    """The parameter that takes the JobContext; None: it wants none."""
    context_positional: bool
    """The context directly follows the leading values, and can be passed without its name."""
    services: tuple[Service, ...]


def describe(function: Callable[..., Any]) -> str:
    """`module.name` of a handler, for messages."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '?')}.{name}"


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """True for `async def`, partials of one, and objects whose `__call__` is one."""
    if inspect.iscoroutinefunction(function):
        return True
    return not inspect.isfunction(function) and inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def refuse_generator(function: Callable[..., Any]) -> None:
    """Raises RegistrationError for a generator function, plain or async: calling one runs nothing of it."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if any(
        check(it) for check in (inspect.isgeneratorfunction, inspect.isasyncgenfunction) for it in (function, called)
    ):
        raise RegistrationError(f"handler {describe(function)} is a generator (it has a `yield`): it would never run")


def check_returned(result: object) -> None:
    """Raises TypeError when what a handler returned is work that it has not done: a coroutine or a generator."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        kind = type(result).__name__
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            # Said here and now; not once more by the interpreter, which warns of a coroutine that nobody awaited.
            result.close()
        raise TypeError(
            f"the handler returned a {kind} that nobody awaits, so its work was not done: "
            "a handler behind a wrapper needs a wrapper that is `async def` and awaits it"
        )


def plan(function: Callable[..., Any], leading: int) -> Plan:
    """Read a handler's signature. `leading`: how many values come first (1: the job; 2 in a pipe: type key and payload).

    Raises RegistrationError when a parameter has no annotation to resolve it by, or an annotation cannot be read.
    """
    parameters = list(_signature(function).parameters.values())
    first, rest = parameters[:leading], parameters[leading:]
    if len(first) < leading or any(parameter.kind not in _POSITIONAL for parameter in first):
        takes = "the job" if leading == 1 else "the type key and the payload"
        raise RegistrationError(
            f"handler {describe(function)} must take {takes} as its first parameter{'s'[: leading - 1]}"
        )
    hints = _hints(function) if rest else {}
    context: str | None = None
    positional = False
    services: list[Service] = []
    for index, parameter in enumerate(rest):
        annotation = hints.get(parameter.name, parameter.annotation)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        unannotated, optional = annotation is parameter.empty, parameter.default is not parameter.empty
        if unannotated and optional and parameter.name not in _CONTEXT_NAMES:
            continue
        if annotation is JobContext or (
            unannotated and context is None and (index == 0 or parameter.name in _CONTEXT_NAMES)
        ):
            if context is not None:
                raise RegistrationError(f"handler {describe(function)} takes the JobContext twice")
            context, positional = parameter.name, index == 0 and parameter.kind in _POSITIONAL
        elif unannotated or parameter.kind is parameter.POSITIONAL_ONLY:
            raise RegistrationError(
                f"handler {describe(function)}: parameter `{parameter.name}` needs a type by which app.services can find it, "
                "and must be passable by name"
            )
        else:
            services.append(Service(parameter.name, annotation, optional))
    return Plan(function, not is_coroutine_function(function), context, positional, tuple(services))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise RegistrationError(f"handler {describe(function)} has no readable signature: {error}") from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolved annotations, also of partials, methods and callable objects."""
    target: Any = function
    while hasattr(target, "func"):
        target = target.func
    if not (inspect.isfunction(target) or inspect.ismethod(target) or inspect.isclass(target)):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except Exception as error:
        # An annotation is arbitrary code; whatever it raises, the handler's author has to see which handler it was.
        raise RegistrationError(
            f"handler {describe(function)} has an annotation that cannot be resolved: {error}"
        ) from error
