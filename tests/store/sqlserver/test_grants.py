"""Least privilege as far as texts can tell: the grants, the table for people, and what the programs of a role call."""

import ast
import re
from pathlib import Path

import pytest

import chokaq
from chokaq.store import sqlfiles
from tests.support.matrix import ROLES, documented, granted

PACKAGE = Path(chokaq.__file__).parent
WORKER_CODE = ("worker", "maintenance", "supervisor")
CLIENT_CODE = ("app.py", "store/client.py", "store/client_thread.py")
HARMLESS = {"SignOut"}
"""Who has signed in to The Deck as a viewer may also sign out."""
_CALL = re.compile(r"\b\w*session\.([a-z_]+)\(")


def test_the_table_for_people_says_what_is_granted() -> None:
    assert documented() == granted()
    assert sorted(documented()) == sqlfiles.names("procedures")


def test_nothing_but_execute_and_the_view_is_granted() -> None:
    text = re.sub(r"--[^\n]*", "", sqlfiles.read("schema", "grants"))
    rights = [line.strip() for line in text.split(";") if "GRANT" in line]
    others = [line for line in rights if not re.search(r"GRANT EXECUTE ON chokaq\.\w+ TO chokaq_\w+$", line)]
    assert [line.partition("GRANT ")[2] for line in others] == [
        "SELECT ON chokaq.Jobs TO chokaq_operator",
        "SELECT ON chokaq.Jobs TO chokaq_reader",
    ]


def test_a_client_may_execute_six_procedures() -> None:
    """Enqueue, read and cancel its own, and nothing else. One more is a decision, not a detail."""
    assert {name for name, roles in granted().items() if "client" in roles} == {
        "EnqueueJobs", "EnqueueKeyedJobs", "GetJob", "GetStatuses", "CancelJobs", "GetClock",
    }  # fmt: skip


def test_a_reader_may_execute_what_changes_nothing() -> None:
    for name in (name for name, roles in granted().items() if "reader" in roles and name not in HARMLESS):
        text = re.sub(r"--[^\n]*|'[^']*'", "", sqlfiles.read("procedures", name))
        assert not re.search(r"\b(UPDATE|DELETE FROM|INSERT INTO|MERGE)\s+chokaq\.", text), f"{name} writes"


@pytest.mark.parametrize(("code", "role"), [(WORKER_CODE, "worker"), (CLIENT_CODE, "client")])
def test_the_programs_of_a_role_call_nothing_it_may_not(code: tuple[str, ...], role: str) -> None:
    """Else a worker under its own role would fail at some chore, hours after its start."""
    allowed = {name for name, roles in granted().items() if role in roles}
    called = {method for part in code for method in _methods(PACKAGE / part)}
    assert len(called) > 3
    needed = {procedure for method in called for procedure in _procedures().get(method, set())}
    assert needed - allowed == set()


def test_every_role_may_open_a_session() -> None:
    assert granted()["GetClock"] == set(ROLES)


def _methods(place: Path) -> set[str]:
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return {name for file in files for name in _CALL.findall(file.read_text(encoding="utf-8"))}


def _procedures() -> dict[str, set[str]]:
    """Method of a session → procedures that it calls."""
    found: dict[str, set[str]] = {}
    for file in sorted((PACKAGE / "store" / "sqlserver").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            names = {
                node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Constant) and node.value in sqlfiles.names("procedures")
            }
            found.setdefault(function.name, set()).update(names)
    # What is enqueued goes through a procedure that the document chooses.
    found["enqueue_jobs"] = {"EnqueueJobs", "EnqueueKeyedJobs"}
    return found
