"""What every bench is given: its target, a folder, the machine's noise; and how it begins and ends."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Spread, spread
from bench.noise import Noise, sync_ms
from bench.target import SCHEMA, Target, open_target

HOME = Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "chokaq-bench")
"""Where databases, logs and the peers' environments go: on a real disk, since a temporary folder may live in memory."""


class Stage:
    """One bench on one store."""

    def __init__(self, kind: str, database: str | None, folder: Path, repeat: int = 1) -> None:
        self.kind, self.database, self.folder, self.repeat = kind, database, folder, repeat
        self.noise = Noise()
        self._targets: list[Target] = []

    def target(self, name: str = SCHEMA) -> Target:
        """The bench's database, or another one beside it; gone at the end."""
        target = open_target(self.kind, self.database, self.folder, name=name)
        self._targets.append(target)
        return target

    def close(self) -> None:
        """Remove what was made."""
        for target in self._targets:
            target.drop()

    def result(self, **figures: Any) -> dict[str, Any]:
        """The JSON object: the store, the figures that apply, the machine."""
        host = {"sync_ms": sync_ms(self.folder)} if self.kind == "sqlite" else {}
        return {"store": self.kind, "repeat": self.repeat, **figures, "machine": self.noise.report() | host}


@contextmanager
def staged(kind: str, database: str | None, *, repeat: int, keep: bool = False) -> Iterator[Stage]:
    """A stage in a folder of its own; `keep`: leave everything where it is."""
    HOME.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=HOME))
    stage = Stage(kind, database, folder, repeat)
    try:
        yield stage
    finally:
        if not keep:
            stage.close()
            shutil.rmtree(folder, ignore_errors=True)


def medians(runs: list[dict[str, Any]], name: str) -> Spread:
    """A figure over several runs."""
    return spread([run[name] for run in runs])


def spreads(runs: list[dict[str, Any]], *names: str) -> dict[str, list[float]]:
    """Lowest and highest of some figures, for the JSON object."""
    return {name: [figure.low, figure.high] for name in names for figure in (medians(runs, name),)}
