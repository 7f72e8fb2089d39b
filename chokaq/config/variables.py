"""`${NAME}`, `${NAME:-default}` and `${file:/path}`: held out before the YAML is parsed, filled in afterwards.

The path of a file may begin with a variable of the environment: `${file:$CREDENTIALS_DIRECTORY/password}` reads what systemd's
LoadCredential, or a mounted secret, has put there.

A secret may hold any character (`:`, `#`, quotes, a line break): the parser never sees it. What is held out leaves a mark of
private-use characters behind, which YAML takes as plain text. `$${…}` stands for the text `${…}` itself.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

MAX_SECRET_BYTES = 65_536

_VARIABLE = re.compile(r"\$?\$\{([^}\n]*)\}")
_FOLDER = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)(/.+)", re.DOTALL)
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


class VariableError(ValueError):
    """A variable is not set, a file cannot be read, or the text between the braces means nothing."""


class Filled(str):
    """Text that came out of a variable: a rule may read a number or `true` from it although YAML would call it text."""

    __slots__ = ()


def hold_out(text: str) -> tuple[str, list[str]]:
    """The text with every variable replaced by a mark, and the expressions by the marks' numbers.

    Raises VariableError when the text holds the marks' own characters.
    """
    if _OPEN in text or _CLOSE in text:
        raise VariableError("holds the private characters U+E000 or U+E001, which stand for variables")
    held: list[str] = []

    def take(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"{_OPEN}{len(held) - 1}{_CLOSE}"

    return _VARIABLE.sub(take, text), held


def has_marks(text: str) -> bool:
    """True when something was held out of this text."""
    return _OPEN in text


def put_back(text: str, held: list[str]) -> str:
    """The text as it was written, for messages: `${NAME}` again where the marks are."""
    return _MARK.sub(lambda mark: held[int(mark[1])], text)


def resolve(expression: str, environ: Mapping[str, str], folder: Path) -> str:
    """What `${…}` stands for. Relative files are looked up in `folder`. Raises VariableError."""
    if expression.startswith("$$"):
        return expression[1:]
    inner = expression[2:-1]
    if inner.startswith("file:"):
        return _read_secret(_file_name(inner.removeprefix("file:"), environ), folder)
    match = _NAME.fullmatch(inner)
    if match is None:
        raise VariableError(f"{expression} is not a variable: write ${{NAME}}, ${{NAME:-default}} or ${{file:/path}}")
    name, default = match[1], match[2]
    value = environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        raise VariableError(f"the environment variable {name} is not set: set it, or write ${{{name}:-default}}")
    return value


def _file_name(text: str, environ: Mapping[str, str]) -> str:
    """The path after `file:`, with the variable it may begin with filled in."""
    match = _FOLDER.fullmatch(text)
    if match is None:
        return text
    value = environ.get(match[1])
    if not value:
        raise VariableError(
            f"the environment variable {match[1]} is not set: set it to the folder of {match[2].lstrip('/')} "
            "(systemd does so for LoadCredential), or write the whole path"
        )
    return value + match[2]


def _read_secret(name: str, folder: Path) -> str:
    if not name:
        raise VariableError("${file:} names no file")
    path = folder / name
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
        if len(content) > MAX_SECRET_BYTES:
            raise VariableError(f"the file {path} is larger than {MAX_SECRET_BYTES:,} bytes: not a secret")
        return content.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        raise VariableError(f"cannot read the file {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise VariableError(f"the file {path} is not UTF-8 text") from None


def fill(text: str, held: list[str], look_up: Callable[[str], str]) -> str:
    """The text with every mark replaced by what `look_up` answers for its expression."""
    return _MARK.sub(lambda mark: look_up(held[int(mark[1])]), text)


def fill_url(text: str, held: list[str], look_up: Callable[[str], str]) -> str:
    """As `fill`, for a database URL: a value inside it is percent-encoded, so that `@`, `/` or `#` in a password stay in it.

    A variable that is the whole text is a URL itself and stays as it is; so does one in the place of the host and port.
    """
    if _MARK.fullmatch(text):
        return fill(text, held, look_up)
    scheme, separator, rest = text.partition("://")
    if not separator:
        return fill(text, held, look_up)
    authority, path = re.fullmatch(r"([^/?]*)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]  # matches any text
    user, at, host = authority.rpartition("@")
    keep = "/" if scheme.startswith("sqlite") else ""

    def encoded(expression: str) -> str:
        return quote(look_up(expression), safe=keep)

    return "".join(
        [
            fill(scheme, held, look_up),
            separator,
            fill(user, held, encoded),
            at,
            fill(host, held, look_up),
            fill(path, held, encoded),
        ]
    )
