"""Options that belong together, declared once and taken by many commands.

A command names such a group as one parameter, e.g. `words: Filter` with `Filter = Annotated[Words, Spread(Words)]`; `spread` makes
of it the options that the group's maker takes, and hands what it made of them to the command.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any


class Spread:
    """Marks a parameter of a command: it stands for the parameters of `make`, and gets what that returns."""

    def __init__(self, make: Callable[..., Any]) -> None:
        """`make`: a function, or a class, whose parameters are options."""
        self.make = make


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it, every group opened into its options, in the order of the command's parameters."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        marks = [mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, Spread)]
        options = [parameter]
        for mark in marks:
            options = list(inspect.signature(mark.make).parameters.values())
            groups[name] = (mark.make, [option.name for option in options])
        parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        # The last group first: it holds what every command shares, which decides how the others' errors are told.
        for name, (make, options) in reversed(groups.items()):
            given[name] = make(**{option: given.pop(option) for option in options})
        command(**given)

    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
