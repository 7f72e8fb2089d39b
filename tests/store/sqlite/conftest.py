"""What the tests of the embedded store share: a fresh file, its store, a session, and programs run beside the test."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chokaq.store.options import DatabaseSettings
from chokaq.store.sqlite import SqliteSession, SqliteStore
from chokaq.store.sqlite.connection import lock_path

ROOT = Path(__file__).resolve().parents[3]
Program = subprocess.Popen[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    return tmp_path / "jobs.db"


@pytest.fixture
def embedded(path: Path) -> SqliteStore:
    """The store over that file."""
    return SqliteStore(DatabaseSettings(url=f"sqlite:///{path}"))


@pytest.fixture
def open_session(embedded: SqliteStore) -> Iterator[SqliteSession]:
    """One session, which has installed the schema."""
    session = embedded.session()
    yield session
    session.close()


@pytest.fixture
def beside() -> Iterator[Callable[..., Program]]:
    """Starts Python programs that speak by stdin and stdout; they are killed at the end of the test."""
    programs: list[Program] = []

    def start(source: str, *arguments: object) -> Program:
        program = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", source, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        programs.append(program)
        return program

    yield start
    for program in programs:
        program.kill()
        program.communicate()


def said(program: Program) -> str:
    """The next line of a program; AssertionError with its stderr when it ended instead."""
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line, program.communicate()[1]
    return line.strip()


def tell(program: Program, line: str = "go") -> None:
    """One line to a program."""
    assert program.stdin is not None
    program.stdin.write(line + "\n")
    program.stdin.flush()


def lock_is_held(path: Path) -> bool:
    """True while somebody holds the writers' lock of a database file."""
    with lock_path(path).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
