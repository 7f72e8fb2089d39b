"""Writes tests/contract/tsql-proof.json: which T-SQL a complete live run of this suite has executed.

Complete means: every test of tests/contract was collected, ran on the live server and passed. Per procedure the file holds
the number of calls and the SHA-256 of its script (no call, no hash), per schema file the SHA-256 once applied; the tuning
script is listed as not executed, since the engine at hand may not know its options. tests/test_tsql_proof.py compares.
"""

import hashlib
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chokaq.store import sqlfiles
from tests.support import mssql, stores

HERE = Path(__file__).parent
FILE = HERE / "tsql-proof.json"
RENEW = f"Renew it with a complete live run: {stores.VARIABLE}=mssql://… pytest tests/contract"


def sha256(path: Path) -> str:
    """Of the file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_tuning(path: Path) -> bool:
    """The script of options that only SQL Server knows."""
    return "tuning" in path.stem.lower()


class Proof:
    """The pytest plugin of a run that has a live server."""

    def __init__(self) -> None:
        """Counts from now on."""
        self.calls: Counter[str] = Counter()
        self.passed: set[str] = set()
        self.other: set[str] = set()
        self.expected: set[str] = set()
        self.deselected = False
        self._lock = threading.Lock()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """A narrowed run proves nothing."""
        self.deselected = self.deselected or any(
            HERE in item.path.parents and stores.SQLITE not in item.nodeid for item in items
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Know what must pass, and count the calls of every procedure."""
        items = [item for item in session.items if HERE in item.path.parents]
        self.expected = {item.nodeid for item in items}
        missing = {path.name for path in HERE.glob("test_*.py")} - {item.path.name for item in items}
        self.deselected = self.deselected or bool(missing) or any("::" in arg for arg in session.config.args)
        if items:
            self._count_calls()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the outcomes of the contract."""
        if report.nodeid not in self.expected:
            return
        if report.failed or report.skipped:
            self.other.add(report.nodeid)
        elif report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the file when the run was complete and green."""
        url = stores.live_url()
        green = self.passed - self.other
        if url is None or self.deselected or not self.expected or green != self.expected:
            return
        FILE.write_text(json.dumps(self.document(url), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def document(self, url: str) -> dict[str, Any]:
        """What the file says."""
        root = sqlfiles.folder()
        live = sum(1 for nodeid in self.passed if stores.SQLSERVER in nodeid)
        schema = {
            path.name: {"executed": False} if is_tuning(path) else {"executed": True, "sha256": sha256(path)}
            for path in sorted((root / "schema").glob("*.sql"))
        }
        procedures = {
            path.name: {"calls": self.calls[path.stem], "sha256": sha256(path)}
            if self.calls[path.stem]
            else {"calls": 0}
            for path in sorted((root / "procedures").glob("*.sql"))
        }
        return {
            "engine": mssql.engine_version(url),
            "live_tests": {"passed": live, "failed": 0},
            "schema": schema,
            "procedures": procedures,
        }

    def _count_calls(self) -> None:
        from chokaq.store.sqlserver.link import Link

        inner = Link._run

        def counted(link: Any, procedure: str, args: tuple[Any, ...]) -> Any:
            with self._lock:
                self.calls[procedure] += 1
            return inner(link, procedure, args)

        Link._run = counted  # type: ignore[method-assign]
