"""The generated pages are what the code says, and the code says what it has to."""

from pathlib import Path

import pytest

from chokaq.config.sections import ENVIRONMENT, POLICY, QUEUE
from tools.reference import DOCS, PAGES
from tools.reference.headers import HeaderError, grants, procedures, read, tables


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `python -m tools.reference`"


def test_every_setting_is_on_the_page() -> None:
    text = PAGES["configuration.md"]()
    for name in (*POLICY, *QUEUE, *ENVIRONMENT):
        assert f"| `{name}` |" in text


def test_every_procedure_says_who_may_execute_it_and_every_parameter_has_a_type() -> None:
    found = procedures()
    assert len(found) >= 50
    assert {each.name for each in found} == set(grants())
    assert dict(next(each for each in found if each.name == "GetJob").parameters) == {"@JobId": "char(26)"}
    for each in found:
        assert set(each.meanings) <= set(each.parameters), each.name
        assert each.purpose, each.name


def test_every_table_is_told_of() -> None:
    found = tables()
    assert {"JobsHot", "JobsArchive", "JobsDLQ", "Jobs", "RunClaims"} <= set(found)
    assert all(found.values())


def test_a_parameter_keeps_the_lines_that_belong_to_it() -> None:
    text = (
        "GO\n-- Twice: does it\n--   again.\n-- Called by: nobody.\n-- Parameters:\n--   @One  the first,\n--         and more.\n"
        "--   @Two  the second.\n-- Table order: none.\nCREATE OR ALTER PROCEDURE chokaq.Twice\n    @One varchar(max),\n"
        "    @Two int\nAS\nBEGIN\nEND;\n"
    )
    found = read("Twice", text)
    assert found.purpose == "does it again."
    assert found.parameters == {"@One": "varchar(max)", "@Two": "int"}
    assert found.meanings == {"@One": "the first, and more.", "@Two": "the second."}


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("-- Other: does it.\n", "must begin with"),
        ("-- Once: does it.\n-- Table order: none.\n", "Called by"),
        ("-- Once: does it.\n-- Called by: nobody.\n", "Table order"),
        ("", "must begin with"),
    ],
)
def test_a_procedure_that_leaves_something_out_is_refused(header: str, complaint: str) -> None:
    with pytest.raises(HeaderError, match=complaint):
        read("Once", f"GO\n{header}CREATE OR ALTER PROCEDURE chokaq.Once\n    @JobId char(26)\nAS\nBEGIN\nEND;\n")


def test_a_file_that_creates_something_else_is_refused() -> None:
    with pytest.raises(HeaderError, match="no procedure of that name"):
        read("Once", Path(DOCS.parent / "sql" / "procedures" / "GetJob.sql").read_text(encoding="utf-8"))
