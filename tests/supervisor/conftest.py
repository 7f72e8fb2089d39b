"""Programs that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .harness import FakeProgram, write_script

Start = Callable[..., FakeProgram]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a supervisor with fake processes: `start(yaml, queue={…script…})`."""
    started: list[FakeProgram] = []

    def begin(config: str, environ: dict[str, str] | None = None, **scripts: dict[str, object]) -> FakeProgram:
        for name, script in scripts.items():
            write_script(tmp_path / "control", name, **script)
        program = FakeProgram(tmp_path, config, environ)
        started.append(program)
        return program

    yield begin
    for program in started:
        program.destroy()
