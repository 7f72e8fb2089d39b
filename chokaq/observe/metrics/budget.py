"""Label values: never empty, never long, and never too many different ones."""

from collections.abc import Callable, Sequence

from chokaq.observe.metrics.catalogue import Instrument
from chokaq.observe.metrics.options import MetricsSettings

Labels = tuple[str, ...]


class Budget:
    """Which values each label has had so far. One per process; not thread-safe."""

    def __init__(self, settings: MetricsSettings, spent: Callable[[str], None] | None = None) -> None:
        """`spent` is called with a label's name for each new value that found its budget used up."""
        self._length = settings.max_value_length
        self._unknown = settings.unknown_value
        self._overflow = settings.overflow_value
        self._most = {
            "queue": settings.max_queues,
            "type": settings.max_types,
            "error": settings.max_errors,
            "number": settings.max_errors,
            "reason": settings.max_reasons,
        }
        self._seen: dict[str, set[str]] = {label: set() for label in self._most}
        self._spent = spent

    def admit(self, instrument: Instrument, values: Sequence[str]) -> Labels:
        """The values as they are exported, in the order of the instrument's labels."""
        return tuple(self._value(label, value) for label, value in zip(instrument.labels, values, strict=True))

    def _value(self, label: str, value: str) -> str:
        clean = value.strip()[: self._length].rstrip() or self._unknown
        seen = self._seen.get(label)
        if seen is None or clean in seen or clean in (self._unknown, self._overflow):
            return clean
        if len(seen) >= self._most[label]:
            if self._spent is not None:
                self._spent(label)
            return self._overflow
        seen.add(clean)
        return clean
