"""No T-SQL ships that was not executed: `sql/schema` and `sql/procedures` must be what the last complete live run ran.

tests/contract/tsql-proof.json is written by that run (tests/contract/proof.py).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from chokaq.store import sqlfiles
from tests.contract.proof import FILE, RENEW, is_tuning, sha256


@pytest.fixture(scope="module")
def proof() -> dict[str, Any]:
    """The proof file."""
    assert FILE.is_file(), f"no complete live run has been recorded ({FILE.name} is missing). {RENEW}"
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def scripts(kind: str) -> dict[str, Path]:
    """The T-SQL files of a kind by name."""
    return {path.name: path for path in sorted((sqlfiles.folder() / kind).glob("*.sql"))}


@pytest.mark.parametrize("kind", ["schema", "procedures"])
def test_every_script_and_no_other_is_in_the_proof(proof: dict[str, Any], kind: str) -> None:
    live, recorded = set(scripts(kind)), set(proof[kind])

    assert live - recorded == set(), f"these scripts of sql/{kind} were never executed. {RENEW}"
    assert recorded - live == set(), f"the proof names scripts that sql/{kind} no longer has. {RENEW}"


@pytest.mark.parametrize("kind", ["schema", "procedures"])
def test_every_script_is_the_text_that_was_executed(proof: dict[str, Any], kind: str) -> None:
    differing = [
        name
        for name, path in scripts(kind).items()
        if not is_tuning(path) and proof[kind].get(name, {}).get("sha256") != sha256(path)
    ]

    assert differing == [], (
        f"these scripts of sql/{kind} changed since they were executed, or were never called. {RENEW}"
    )


def test_every_procedure_was_called(proof: dict[str, Any]) -> None:
    silent = [name for name in scripts("procedures") if not proof["procedures"].get(name, {}).get("calls")]

    assert silent == [], f"the contract suite never calls these procedures: write a test that does. {RENEW}"


def test_the_proof_is_of_a_green_live_run(proof: dict[str, Any]) -> None:
    assert proof["engine"]
    assert proof["live_tests"]["failed"] == 0
    assert proof["live_tests"]["passed"] > 300
