"""A statement of a schema script that the server refuses is named in the log."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from chokaq.store.sqlserver.schema import Target
from chokaq.store.sqlserver.scripts import migrations


class Refusing(Target):
    """A server that takes one batch."""

    def __init__(self) -> None:
        self.schema, self.is_babelfish, self.batches = "chokaq", False, 0

    def run(self, sql: str, *_args: Any) -> None:
        self.batches += 1
        if self.batches == 2:
            raise RuntimeError("42S01: there is already an object of that name; PWD=x")


def test_a_statement_that_fails_is_told_with_its_script() -> None:
    script = next(found for found in migrations() if len(list(found.batches("chokaq", create_or_alter=True))) > 1)
    with capture_logs() as logs, pytest.raises(RuntimeError):
        Refusing().script(script)
    [line] = logs
    assert (line["event"], line["script"], line["batch"]) == ("schema_script_failed", script.name, 2)
    assert line["error"].startswith("42S01")
