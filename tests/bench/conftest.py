"""Benches at tiny sizes, in this process: `bench("latency", "--jobs", "5")` answers the JSON object of the last line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench import cli, stage

Bench = Callable[..., dict[str, Any]]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Run one command on SQLite; it has to end well, and leave nothing behind in its folder."""
    monkeypatch.setattr(stage, "HOME", tmp_path / "home")

    def run(command: str, *arguments: str, repeat: int = 1) -> dict[str, Any]:
        code = cli.main([command, "--store", "sqlite", "--repeat", str(repeat), "--json", *arguments])
        out = capsys.readouterr().out
        assert code == 0, out
        found: dict[str, Any] = orjson.loads(out.strip().splitlines()[-1])
        assert found["bench"] == command
        assert found["machine"]["spin"]["median"] > 0
        assert list((tmp_path / "home").iterdir()) == []
        return found

    return run
