"""Real programs beside the test: started together, released at one instant, each reporting one JSON object."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from chokaq.store.options import DatabaseSettings

ROOT = Path(__file__).resolve().parents[2]
Report = dict[str, Any]


def run_programs(
    name: str, count: int, settings: DatabaseSettings, timeout: float = 90.0, **arguments: Any
) -> list[Report]:
    """Run `count` copies of tests/support/programs/<name>.py; their reports in order.

    Every copy is up, with its imports done, before any begins. AssertionError with its stderr when one fails.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    programs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", f"tests.support.programs.{name}"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for index, program in enumerate(programs):
            order = {"settings": msgspec.to_builtins(settings), "index": index, "arguments": arguments}
            _tell(program, json.dumps(order))
        for program in programs:
            assert program.stdout is not None
            if program.stdout.readline() != "ready\n":
                raise AssertionError(f"{name} did not start:\n{program.communicate()[1]}")
        for program in programs:
            _tell(program, "go")
        return [_report(name, program, timeout) for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.communicate()


def _tell(program: subprocess.Popen[str], line: str) -> None:
    assert program.stdin is not None
    program.stdin.write(line + "\n")
    program.stdin.flush()


def _report(name: str, program: subprocess.Popen[str], timeout: float) -> Report:
    out, err = program.communicate(timeout=timeout)
    assert program.returncode == 0, f"{name} ended with {program.returncode}:\n{err}"
    report: Report = json.loads(out.splitlines()[-1])
    return report
