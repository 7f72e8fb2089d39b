"""What is wrong with a configuration, all of it at once."""

from typing import NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong, and where it stands."""

    path: str
    """`queues.emails.max_workers`, `$CHOKAQ_LOG_LEVEL`, or empty for the file as a whole."""
    message: str
    """What it must be and what it is; never holds a secret."""
    line: int | None = None
    """Line in the YAML file, counted from 1."""

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line is not None else ""
        return f"{self.path}: {self.message}{place}" if self.path else f"{self.message}{place}"


class ConfigError(Exception):
    """The configuration cannot be used. `str()` lists every problem with its path, one a line."""

    def __init__(self, problems: list[Problem] | str, source: str | None = None) -> None:
        """`problems`: all that was found, or one sentence; `source`: the file they stand in."""
        self.problems = [Problem("", problems)] if isinstance(problems, str) else list(problems)
        self.source = source
        super().__init__(self._text())

    def _text(self) -> str:
        head = f"{self.source}: " if self.source else ""
        if len(self.problems) == 1:
            return f"{head}{self.problems[0]}"
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        return f"{head}{len(self.problems)} problems in the configuration\n{lines}"
