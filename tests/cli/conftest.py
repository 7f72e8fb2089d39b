"""The commands as a person types them: `cli("status", "--json")` in a folder of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import structlog
from typer.testing import CliRunner

from chokaq.cli.program import build
from tests.support.fake_repairs import FakeRepairs

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, which must be one JSON document."""
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture(autouse=True)
def no_logging_of_others() -> Iterator[None]:
    """A command begins as a program does, with logging that nobody has set up."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the commands; nothing of the tester's environment reaches them."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("CHOKAQ_") or name in {"COLUMNS", "LINES"}:
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def cli() -> Cli:
    """Run a command in this process; what it puts into the environment ends with it."""

    def run(*arguments: str, code: int | None = 0, stdin: str | None = None) -> Ran:
        with mock.patch.dict(os.environ):
            result = CliRunner().invoke(build(), list(arguments), input=stdin, prog_name="chokaq")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        ran = Ran(result.exit_code, result.stdout, result.stderr)
        if code is not None:
            assert ran.code == code, ran
        return ran

    return run


@pytest.fixture
def program(tmp_path: Path) -> Cli:
    """Run a command as a real program."""

    def run(*arguments: str, code: int = 0, **environ: str) -> Ran:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("CHOKAQ_")}
        done = subprocess.run(
            [sys.executable, "-m", "chokaq", *arguments],
            cwd=tmp_path,
            env={**plain, "PYTHONPATH": str(ROOT), **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert ran.code == code, ran
        assert "Traceback" not in ran.err
        return ran

    return run


def enqueue(cli: Cli, *options: str, queue: str = "emails") -> str:
    """Enqueue one job; its id."""
    answer = cli("enqueue", "email.send.v1", '{"to": "a@b"}', "--queue", queue, "--json", *options).json
    return str(answer["answer"]["id"])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRepairs:
    """A store in memory that the commands find instead of the one that is configured."""
    repairs = FakeRepairs()
    monkeypatch.setattr("chokaq.operations.connect.open_store", lambda _options: repairs.store)
    return repairs


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits at a terminal; what they type is the command's stdin."""
    monkeypatch.setattr("chokaq.cli.confirm._somebody_is_there", lambda: True)
