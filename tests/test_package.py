"""The package's front: every public name is there, is imported only when it is used, and is typed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import chokaq

FRONT = Path(chokaq.__file__)
HEAVY = ("asyncio", "msgspec", "yaml", "structlog", "ulid", "importlib.metadata")


def _run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=FRONT.parents[1], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_importing_the_package_imports_nothing_else_of_it_and_nothing_heavy() -> None:
    out = _run(
        "import sys; before = set(sys.modules); import chokaq; print(*sorted(set(sys.modules) - before), sep='\\n')"
    )
    loaded = out.split()
    assert [name for name in loaded if name.startswith("chokaq")] == ["chokaq"]
    assert not set(loaded) & set(HEAVY)


@pytest.mark.parametrize("name", chokaq.__all__)
def test_every_public_name_is_found_and_stays(name: str) -> None:
    found = getattr(chokaq, name)
    assert found is getattr(chokaq, name)
    assert name in dir(chokaq)
    assert getattr(found, "__name__", "__version__") == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Chokaq'"):
        _ = chokaq.Chokaq


def test_what_type_checkers_see_is_what_there_is_at_run_time() -> None:
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(FRONT.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("chokaq.")
        for alias in node.names
    }
    found = {name: f"chokaq.{home}" for home, names in chokaq._HOMES.items() for name in names}
    assert seen == found
    assert {*seen, "__version__"} == set(chokaq.__all__)


def test_the_package_says_that_it_is_typed() -> None:
    assert (FRONT.parent / "py.typed").is_file()
