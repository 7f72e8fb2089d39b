"""Which programs a schema serves."""

import pytest

from chokaq.store.errors import SchemaMismatch
from chokaq.store.sqlserver.link import installed
from chokaq.store.versions import Installed, check_served, is_newer, is_served, serves


def test_a_file_serves_what_its_header_says_else_its_own_version() -> None:
    assert serves("-- 009: things.\n-- Serves: programs from version 4 on.\nCREATE …", 9) == 4
    assert serves("-- 009: things. Serves: programs from version 4 on.\n", 9) == 9


@pytest.mark.parametrize("program", [4, 5, 7])
def test_programs_from_the_oldest_on_are_served(program: int) -> None:
    check_served(Installed(7, 4), program, "here")
    assert is_served(Installed(7, 4), program)
    assert is_newer(Installed(7, 4), program) is (program < 7)


@pytest.mark.parametrize(
    ("found", "program", "message"),
    [
        (None, 5, r"here: the schema is at version none, this program needs 5: run `chokaq schema apply`"),
        (Installed(4, 4), 5, r"here: the schema is at version 4, this program needs 5: run `chokaq schema apply`"),
        (
            Installed(9, 6),
            5,
            r"at version 9, newer than this program knows \(5\), and serves programs from version 6 on",
        ),
    ],
)
def test_all_others_are_refused_with_the_way_out(found: Installed | None, program: int, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        check_served(found, program, "here")
    assert not is_served(found, program)


def test_the_clock_of_release_0_1_0_tells_its_own_version_alone() -> None:
    assert installed((None, 4)) == Installed(4, 4)
    assert installed((None, None)) is None
    assert installed((None, 4, 7, 4)) == Installed(7, 4)
