"""A house per test, a runtime folder of its own for the doorbell."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .harness import House


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., House]]:
    """Call it with a queue's settings for a house."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    houses: list[House] = []

    def make(**options: object) -> House:
        house = House(tmp_path, **options)  # type: ignore[arg-type]
        houses.append(house)
        return house

    yield make
    for house in houses:
        house.close()


@pytest.fixture
def house(build: Callable[..., House]) -> House:
    """A house with the default queue."""
    return build()
