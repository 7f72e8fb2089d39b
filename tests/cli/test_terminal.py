"""The question of a real program on a real terminal."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT, Cli, enqueue


def deactivate(folder: Path, typed: str) -> tuple[int, str, str]:
    """Run `queues deactivate` with a terminal as its stdin, on which `typed` is typed; exit code, stdout and stderr."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        done = subprocess.run(
            [sys.executable, "-m", "chokaq", "queues", "deactivate", "emails", "--json"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stdout, done.stderr


def test_a_queue_is_deactivated_when_its_phrase_is_typed_on_a_terminal(cli: Cli, folder: Path) -> None:
    enqueue(cli)
    code, out, err = deactivate(folder, "no\n")
    assert (code, json.loads(out)["error"]["kind"]) == (1, "problem")
    assert "'deactivate emails' was to be typed" in err
    assert cli("queues", "list", "--json").json["queues"][0]["live"]["active"] is True
    code, out, err = deactivate(folder, "deactivate emails\n")
    assert (code, json.loads(out)["live"]["active"]) == (0, False)
    assert "Type `deactivate emails` to do it:" in err
