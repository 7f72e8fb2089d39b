"""Where something is counted by name: a worker's recorder, an application's registry, a meter. And what the store counts with."""

from typing import Protocol


class Sink(Protocol):
    """Counts by a metric's name and the values of its labels, in their order. May be called from any thread; never raises."""

    def add(self, name: str, *values: str, amount: float = 1.0) -> None:
        """Count so many."""
        ...

    def observe(self, name: str, *values: str, value: float) -> None:
        """Count one value of a histogram."""
        ...


class SqlFigures:
    """Errors of the database in this process, told from wherever a driver's error is met. Counts nothing without a sink."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        """One per process: the worker's, else that of the application instrumented last."""

    def failed(self, number: str) -> None:
        """The database told an error, by its number or name."""
        if self.sink is not None:
            self.sink.add("chokaq_sql_errors_total", number or NONE)

    def repeated(self, number: str) -> None:
        """A call is made again because of such an error."""
        if self.sink is not None:
            self.sink.add("chokaq_sql_retries_total", number or NONE)


NONE = "none"
sql = SqlFigures()
