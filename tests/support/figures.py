"""Figures of one recorder, or of a whole run directory, as tests read them."""

from pathlib import Path

from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.recorder import Recorder
from chokaq.observe.metrics.render import merge
from chokaq.observe.metrics.run import read_all
from chokaq.observe.metrics.values import ValueFile, read_values


class Figures:
    """A recorder with a file of its own, and what it has counted."""

    def __init__(self, folder: Path, settings: MetricsSettings | None = None) -> None:
        self._file = ValueFile(folder / "1-a.figures")
        self.recorder = Recorder(self._file, settings or MetricsSettings())

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def all(self) -> dict[tuple[str, ...], tuple[float, ...]]:
        """Everything known, by name without `chokaq_` and `_total`, and label values."""
        return short(merge(read_values(self._file.path)))

    def count(self, name: str, *labels: str) -> float:
        """A counter or gauge; of a histogram how many values it has seen. 0 when there is none."""
        return of(self.all(), name, *labels)

    def labels(self, name: str) -> dict[tuple[str, ...], float]:
        """Every set of label values of a metric with its count."""
        return {key[1:]: of(self.all(), *key) for key in self.all() if key[0] == name}

    def total(self, name: str, *labels: str) -> float:
        """The sum of a histogram's values."""
        return self.all()[name, *labels][-1]


def short(entries: dict[tuple[str, ...], tuple[float, ...]]) -> dict[tuple[str, ...], tuple[float, ...]]:
    """The same under shorter names."""
    return {(key[0].removeprefix("chokaq_").removesuffix("_total"), *key[1:]): value for key, value in entries.items()}


def of(entries: dict[tuple[str, ...], tuple[float, ...]], name: str, *labels: str) -> float:
    """The number under a key; of a histogram its count."""
    values = entries.get((name, *labels), (0.0,))
    return values[0] if len(values) == 1 else sum(values[:-1])


def of_worker(folder: Path) -> dict[tuple[str, ...], tuple[float, ...]]:
    """What all processes of the one worker below `folder` have counted."""
    (run,) = [path for path in folder.iterdir() if path.name.startswith("chokaq-metrics-")]
    return short(merge(read_all(run)))
