"""Walks a parsed document by its rules and gathers typed values, their origins, and every problem on the way."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chokaq.config.document import Document, path_text
from chokaq.config.document import Path as Place
from chokaq.config.errors import Problem
from chokaq.config.rules import Rule, shown
from chokaq.config.sections import (
    DATABASE,
    DECK,
    ENVELOPE,
    IDEMPOTENCY,
    MAINTENANCE,
    METRICS,
    POLICY,
    PROBES,
    QUEUE,
    SECTIONS,
    SUPERVISOR,
    TOP,
    TRACING,
    Section,
)
from chokaq.config.variables import Filled, VariableError, fill, fill_url, has_marks, put_back, resolve

_HOMES: dict[str, tuple[str, Section]] = {
    "supervisor": ("supervisor", SUPERVISOR),
    "maintenance": ("maintenance", MAINTENANCE),
    "envelope": ("envelope", ENVELOPE),
    "idempotency": ("idempotency", IDEMPOTENCY),
    "tracing": ("tracing", TRACING),
    "metrics": ("metrics", METRICS),
    "deck": ("deck", DECK),
    "probes": ("probes", PROBES),
    "policy": ("defaults, a queue or a type", POLICY),
    "queue": ("defaults or a queue", QUEUE),
    "database": ("database", DATABASE),
    "top": ("the top of the file", TOP),
}
_BROKEN = object()


class Reader:
    """Reads sections out of one document."""

    def __init__(self, document: Document, environ: Mapping[str, str], folder: Path, source: str) -> None:
        self.document = document
        self.problems: list[Problem] = list(document.problems)
        self.origins: dict[str, str] = {}
        self._environ = environ
        self._folder = folder
        self._source = source

    def complain(self, place: Place, message: str) -> None:
        """Note a problem at a place of the document."""
        self.problems.append(Problem(path_text(place), message, self.document.lines.get(place)))

    def mapping(self, place: Place, value: object) -> dict[str, Any]:
        """The value as a mapping; nothing stands for an empty one."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.complain(place, f"must be a mapping of options, got {self._shown(value)}")
        return {}

    def section(self, place: Place, value: object, rules: Section, *, besides: tuple[str, ...] = ()) -> dict[str, Any]:
        """The typed values of the options that are given. Options in `besides` are read by somebody else."""
        found: dict[str, Any] = {}
        for name, raw in self.mapping(place, value).items():
            here = (*place, name)
            if name in rules:
                typed = self.option(here, raw, rules[name])
                if typed is not _BROKEN:
                    found[name] = typed
            elif name not in besides:
                self.complain(here, unknown_option(name, [*rules, *besides], place))
        return found

    def option(self, place: Place, raw: object, rule: Rule) -> object:
        """The typed value of one option, or a mark that stands for a broken one."""
        try:
            value = rule(self._filled(place, raw))
        except VariableError as error:
            self.complain(place, str(error))
        except ValueError as error:
            self.complain(place, str(error))
        else:
            line = self.document.lines.get(place)
            self.origins[path_text(place)] = f"{self._source}:{line}" if line else self._source
            return value
        return _BROKEN

    def environment(self, variable: str, place: Place, rule: Rule) -> object:
        """The typed value of an option that an environment variable sets."""
        try:
            value = rule(Filled(self._environ[variable]))
        except ValueError as error:
            self.problems.append(Problem(f"${variable}", str(error)))
            return _BROKEN
        self.origins[path_text(place)] = f"${variable}"
        return value

    def _filled(self, place: Place, raw: object) -> object:
        if isinstance(raw, list):
            return [self._filled((*place, str(index)), item) for index, item in enumerate(raw)]
        if not isinstance(raw, str):
            return raw
        if "${" in raw:
            raise VariableError("`${` is not closed by `}` on the same line")
        if not has_marks(raw):
            return raw
        filler = fill_url if _is_url(place) else fill
        return Filled(filler(raw, self.document.held, lambda name: resolve(name, self._environ, self._folder)))

    def _shown(self, value: object) -> str:
        return shown(put_back(value, self.document.held) if isinstance(value, str) else value)


def _is_url(place: Place) -> bool:
    """True where a database's URL stands: `database`, `database.url`, `databases.NAME` or `databases.NAME.url`."""
    match place:
        case ("database",) | ("database", "url") | ("databases", _) | ("databases", _, "url"):
            return True
        case _:
            return False


def is_broken(value: object) -> bool:
    """True for the mark of an option whose value was refused."""
    return value is _BROKEN


def unknown_option(name: str, known: list[str], place: Place) -> str:
    """What to say about an option that does not exist here: the nearest name, or the section it belongs to."""
    folded = name.lower().replace("-", "_")
    near = difflib.get_close_matches(folded, known, n=1, cutoff=0.7)
    if near:
        return f"unknown option; did you mean {near[0]}?"
    for home, rules in _HOMES.values():
        if name in rules:
            return f"unknown option here; it belongs under {home}"
    near = difflib.get_close_matches(folded, known, n=1, cutoff=0.5)
    if near:
        return f"unknown option; did you mean {near[0]}?"
    where = path_text(place) or "the top of the file"
    return f"unknown option; {where} knows {', '.join(known if place else [*TOP, *SECTIONS])}"
