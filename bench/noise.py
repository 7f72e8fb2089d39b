"""How fast, and how busy, this machine is right now: shown beside every measurement, since shared hosts swing by half."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import rounded, spread

SPINS = 200_000
"""Turns of the calibrated loop: some 10 ms of pure Python."""
SYNCS = 20


class Noise:
    """The spin speeds (million turns a second) and loads seen around the runs of one bench."""

    def __init__(self) -> None:
        self.speeds: list[float] = []
        self.loads: list[float] = []

    def sample(self) -> None:
        """Look once."""
        self.speeds.append(spin())
        self.loads.append(os.getloadavg()[0])

    @contextmanager
    def around(self) -> Iterator[None]:
        """Look before and after a run."""
        self.sample()
        yield
        self.sample()

    def report(self) -> dict[str, Any]:
        """For the JSON object: median and extremes of the speed, and the highest load."""
        if not self.speeds:
            return {}
        speed = spread(self.speeds)
        return {
            "spin": {name: rounded(value) for name, value in zip(("median", "low", "high"), speed, strict=False)},
            "load": rounded(max(self.loads)),
            "cpus": os.cpu_count(),
        }

    def __str__(self) -> str:
        speed = spread(self.speeds)
        swing = 100 * (speed.high - speed.low) / speed.median
        return f"machine: {speed} M turns/s of a spin loop (swing {swing:.0f} %), load up to {max(self.loads):.1f}"


def spin() -> float:
    """Million turns a second of a fixed Python loop; the best of three, so that one preemption does not count."""
    best = float("inf")
    for _ in range(3):
        total = 0
        began = time.perf_counter()
        for turn in range(SPINS):
            total += turn & 3
        best = min(best, time.perf_counter() - began)
    return SPINS / best / 1e6


def sync_ms(folder: Path) -> float:
    """Median milliseconds of making 8 kB durable in `folder`: where this costs nothing, a durable commit is no evidence."""
    path, times = folder / "sync.probe", []
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for _ in range(SYNCS):
            os.pwrite(descriptor, b"x" * 8192, 0)
            began = time.perf_counter()
            os.fdatasync(descriptor)
            times.append(1000 * (time.perf_counter() - began))
    finally:
        os.close(descriptor)
        path.unlink()
    return spread(times).median
