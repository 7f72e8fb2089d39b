"""What a value in the YAML must be, and how it becomes a typed setting."""

import ipaddress
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chokaq.config.durations import format_duration, format_size, parse_duration, parse_size
from chokaq.config.variables import Filled

SECOND, MINUTE, HOUR, DAY = 1.0, 60.0, 3_600.0, 86_400.0
YEARS = 36_500 * DAY
"""Upper bound of a duration that only has to be sane: a hundred years."""
INT_MS = 2_147_483.0
"""Upper bound of a duration that travels to the store as a 32-bit count of milliseconds: 24 days."""


class WrongValue(ValueError):
    """Says by itself what is wrong with a value, where `must be …` would not help."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Reads one value. Call it: it answers the typed value or raises ValueError(`must be …, got …`)."""

    wants: str
    """Completes `must be …`."""
    read: Callable[[object], object]
    """Answers the typed value; raises ValueError or TypeError."""
    span: str = ""
    """What is allowed, in a few words, for the example file."""
    show: Callable[[Any], str] = str
    """A typed value as it is written in YAML."""
    optional: bool = False
    """True: null is allowed and stands for None."""
    secret: bool = False
    """True: messages do not show the value."""

    def __call__(self, value: object) -> object:
        if value is None or (self.optional and isinstance(value, Filled) and value.lower() in {"", "null", "~"}):
            if self.optional:
                return None
        else:
            try:
                return self.read(value)
            except WrongValue:
                raise
            except (ValueError, TypeError, OverflowError):
                pass
        got = "a value not shown here" if self.secret else shown(value)
        raise ValueError(f"must be {self.wants}{' or null' if self.optional else ''}, got {got}")

    def or_null(self) -> "Rule":
        """The same rule, with null allowed."""
        return replace(self, optional=True)

    def text(self, value: object) -> str:
        """The value as YAML."""
        return "null" if value is None else self.show(value)


def shown(value: object) -> str:
    """A value of the YAML as a message shows it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(str(value) if len(value) <= 60 else value[:57] + "...")
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return str(value)


def integer(least: int, most: int) -> Rule:
    """A whole number within bounds."""

    def read(value: object) -> int:
        number = int(value) if isinstance(value, Filled) else value
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise ValueError
        return number

    return Rule(f"a whole number from {least:,} to {most:,}", read, f"{least:,} to {most:,}")


def number(least: float, most: float) -> Rule:
    """A number within bounds."""

    def read(value: object) -> float:
        found = float(value) if isinstance(value, Filled) else value
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            raise ValueError
        if not least <= found <= most:
            raise ValueError
        return float(found)

    return Rule(f"a number from {least:g} to {most:g}", read, f"{least:g} to {most:g}", lambda value: f"{value:g}")


def duration(least: float = 0.001, most: float = YEARS) -> Rule:
    """A duration within bounds, in seconds."""

    def read(value: object) -> float:
        seconds = parse_duration(value)
        if not least <= seconds <= most:
            raise ValueError
        return seconds

    upper = f"to {format_duration(most)}" if most < YEARS else "on"
    span = f"{format_duration(least)} {upper}"
    return Rule(f"a duration like 1h30m, 15s or 500ms from {span}", read, span, format_duration)


def size(least: int, most: int) -> Rule:
    """A number of bytes within bounds."""

    def read(value: object) -> int:
        found = parse_size(value)
        if not least <= found <= most:
            raise ValueError
        return found

    span = f"{format_size(least)} to {format_size(most)}"
    return Rule(f"a size like 512MB from {span}", read, span, format_size)


def flag() -> Rule:
    """True or false."""

    def read(value: object) -> bool:
        if isinstance(value, Filled):
            value = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(value.lower())
        if value is True or value is False:
            return value
        raise ValueError

    return Rule("true or false", read, "true or false", lambda value: "true" if value else "false")


def choice(*names: str) -> Rule:
    """One of a few words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in names:
            raise ValueError
        return value.lower()

    words = f"{', '.join(names[:-1])} or {names[-1]}"
    return Rule(words, read, words)


def text(wants: str, accept: Callable[[str], bool], *, secret: bool = False) -> Rule:
    """Text that `accept` accepts."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not accept(value):
            raise ValueError
        return str(value)

    return Rule(wants, read, secret=secret)


def texts(wants: str, accept: Callable[[str], bool]) -> Rule:
    """A list of texts, each of which `accept` accepts."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) and accept(item) for item in value):
            raise ValueError
        return tuple(map(str, value))

    def show(value: Sequence[str]) -> str:
        return "[" + ", ".join("'" + item.replace("'", "''") + "'" for item in value) + "]"

    return Rule(wants, read, "", show)


def patterns() -> Rule:
    """A list of regular expressions; none of them may match the empty text."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise ValueError
        for index, item in enumerate(value):
            try:
                compiled = re.compile(item)
            except re.error as error:
                raise WrongValue(f"[{index}] {shown(item)} is not a regular expression: {error}") from None
            if compiled.search("") is not None:
                raise WrongValue(f"[{index}] {shown(item)} matches the empty text: it would hide everything")
        return tuple(map(str, value))

    def show(value: Sequence[str]) -> str:
        return "[" + ", ".join("'" + item.replace("'", "''") + "'" for item in value) + "]"

    return Rule("a list of regular expressions", read, "", show)


def is_name(value: str) -> bool:
    """True for the name of a queue or a type key: 1 … 255 printable ASCII characters, no space at its ends."""
    return 0 < len(value) <= 255 and value.isascii() and value.isprintable() and value == value.strip()


def is_database_name(value: str) -> bool:
    """True for the name of a database: it stands in logs, labels and on command lines."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", value) is not None


def is_secret(value: str) -> bool:
    """True for a text that can be a secret: long enough not to be guessed, plain enough for a header."""
    return 32 <= len(value) <= 200 and value.isascii() and value.isprintable() and " " not in value


def is_address(value: str) -> bool:
    """True for what can be listened on without asking anybody: an address, or `localhost`."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return value.lower() == "localhost"
    return True


def is_label(value: str) -> bool:
    """True for a text that may stand as the value of a metric's label."""
    return 0 < len(value) <= 1_000 and value.isprintable() and value == value.strip()


def is_network(value: str) -> bool:
    """True for an address or a network."""
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True
