"""What one process counts with: cells of its own file, resolved once per set of label values, then one memory store each.

A cell has one writer. Whoever keeps a Counter, Gauge or Histogram writes it from one thread; `add` and `observe` by name may be
called from any, and must not be used for what another thread holds a cell of.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeVar

import structlog

from chokaq.observe.metrics.budget import Budget, Labels
from chokaq.observe.metrics.catalogue import BY_NAME, Instrument, Kind
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.values import Cells, Key, ValueFile

_log = structlog.get_logger("chokaq")
_OVERFLOWS = "chokaq_metrics_overflows_total"


class Counter:
    """A number that only rises."""

    __slots__ = ("_at", "_view")

    def __init__(self, cells: Cells, _instrument: Instrument) -> None:
        self._view = cells.view
        self._at = cells.base

    def add(self, amount: float = 1.0) -> None:
        """Count."""
        self._view[self._at] += amount


class Gauge:
    """A number as it is now; not exported before the first `set`, and after `clear`."""

    __slots__ = ("_at", "_view")

    def __init__(self, cells: Cells, _instrument: Instrument) -> None:
        self._view = cells.view
        self._at = cells.base
        self.clear()

    def set(self, value: float) -> None:
        """It is this now."""
        self._view[self._at] = value

    def clear(self) -> None:
        """It is not known any more."""
        self._view[self._at] = math.nan


class Histogram:
    """How often values fell between its bounds, and their sum."""

    __slots__ = ("_at", "_bounds", "_sum", "_view")

    def __init__(self, cells: Cells, instrument: Instrument) -> None:
        self._view = cells.view
        self._at = cells.base
        self._bounds = instrument.bounds
        self._sum = cells.base + len(instrument.bounds) + 1

    def observe(self, value: float) -> None:
        """Count one value."""
        view = self._view
        view[self._at + bisect_left(self._bounds, value)] += 1.0
        view[self._sum] += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Count many, for less."""
        view, at, bounds = self._view, self._at, self._bounds
        for value in values:
            view[at + bisect_left(bounds, value)] += 1.0
        view[self._sum] += sum(values)


_Made = TypeVar("_Made", Counter, Gauge, Histogram)


class Recorder:
    """All figures of one process."""

    def __init__(self, file: ValueFile, settings: MetricsSettings) -> None:
        """`file`: of this process alone."""
        self._file = file
        self.overflow_value = settings.overflow_value
        self._budget = Budget(settings, self._spent)
        self._lock = threading.RLock()
        self._resolved: dict[Key, Counter | Gauge | Histogram] = {}
        self._made: dict[Key, Counter | Gauge | Histogram] = {}
        self._full = False

    def counter(self, name: str, *values: str) -> Counter:
        """The cell of a counter; `values` in the order of its labels."""
        return self._resolve(Counter, name, values)

    def gauge(self, name: str, *values: str) -> Gauge:
        """The cell of a gauge."""
        return self._resolve(Gauge, name, values)

    def histogram(self, name: str, *values: str) -> Histogram:
        """The cells of a histogram."""
        return self._resolve(Histogram, name, values)

    def add(self, name: str, *values: str, amount: float = 1.0) -> None:
        """Count, from any thread. In a forked copy of the process nothing is counted: its lock may be held there for ever."""
        if self._file.is_ours:
            with self._lock:
                self.counter(name, *values).add(amount)

    def observe(self, name: str, *values: str, value: float) -> None:
        """Count one value of a histogram, from any thread; see `add`."""
        if self._file.is_ours:
            with self._lock:
                self.histogram(name, *values).observe(value)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _resolve(self, kind: type[_Made], name: str, values: Labels) -> _Made:
        asked = (name, *values)
        found = self._resolved.get(asked)
        if found is None:
            with self._lock:
                found = self._make(kind, BY_NAME[name], asked)
        assert isinstance(found, kind)
        return found

    def _make(self, kind: type[_Made], instrument: Instrument, asked: Key) -> Counter | Gauge | Histogram:
        if instrument.kind is not Kind(kind.__name__.lower()):
            raise TypeError(f"{instrument.name} is a {instrument.kind}")
        key = (instrument.name, *self._budget.admit(instrument, asked[1:]))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = kind(self._cells(key, instrument.cells), instrument)
        if key == asked:
            # Only what the budget lets through as it is: nothing here may grow with what others make up.
            self._resolved[asked] = made
        return made

    def _cells(self, key: Key, count: int) -> Cells:
        try:
            if self._file.is_ours:
                return self._file.add(key, count)
        except OSError as error:
            if not self._full:
                self._full = True
                _log.warning("metrics_file_full", file=str(self._file.path), error=str(error))
        return Cells(memoryview(bytearray(8 * count)).cast("d"), 0)

    def _spent(self, label: str) -> None:
        self.counter(_OVERFLOWS, label).add()
