"""docs/cases.md and the tests agree: every acceptance case has tests, each exists, and each says which case it is about."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parent / "docs" / "cases.md"
LATER = {"C36", "C37", "C38"}
"""They come with schedules."""


def rows() -> dict[str, list[str]]:
    """The tests of each case, as the table has them."""
    found: dict[str, list[str]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\| (C\d+) \|.*\| ([^|]+) \|$", line):
            assert match[1] not in found, f"{match[1]} stands in the table twice"
            found[match[1]] = re.findall(r"`([^`]+)`", match[2])
    return found


@cache
def texts(file: str) -> tuple[str, dict[str, str]]:
    """The docstring of a module of tests, and the source of every test in it."""
    source = (HERE / file).read_text(encoding="utf-8")
    tree = ast.parse(source)
    tests = {
        node.name: ast.get_source_segment(source, node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    return ast.get_docstring(tree) or "", tests


def test_every_case_has_its_row() -> None:
    assert list(rows()) == [f"C{number}" for number in range(1, 49)]


@pytest.mark.parametrize("case", [f"C{number}" for number in range(1, 49)])
def test_every_test_of_a_case_exists_and_names_it(case: str) -> None:
    named = rows()[case]
    assert bool(named) is (case not in LATER)
    for test in named:
        file, _, name = test.partition("::")
        module, tests = texts(file)
        assert name in tests, f"{case}: there is no {test}"
        words = f"{module} {tests[name]}"
        assert re.search(rf"\b{case}\b", words) or f"_{case.lower()}_" in name, (
            f"{test} does not say that it is about {case}"
        )
