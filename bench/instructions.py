"""Instructions per job of the paths in bench.paths, counted by callgrind and compared with a saved baseline.

Times on a shared host swing by half; the number of instructions does not. Each path runs twice, with few and with many jobs: the
difference, divided by the difference in jobs, leaves out imports and set-up.

    python -m bench.instructions                 compare with the baseline; exit code 1 when a path has grown
    python -m bench.instructions --save          make it the baseline
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.figures import shown
from bench.output import answer, note, say, table
from bench.paths import COUNTED, PATHS, SET
from bench.target import BenchError
from bench.workers import ROOT

BASELINE = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.03
"""A path may grow by this share before the comparison fails: interpreters of one version still differ by a little."""
_COLLECTED = re.compile(rb"Collected\s*:\s*([\d ]+)")


def count(path: str, few: int, many: int) -> float:
    """Instructions per job."""
    return (_collect(path, many) - _collect(path, few)) / (many - few)


def python_name() -> str:
    """Baselines are kept per interpreter: `3.11 x86_64`."""
    return f"{sys.version_info.major}.{sys.version_info.minor} {platform.machine()}"


def compare(found: dict[str, float], baseline: dict[str, float]) -> dict[str, float]:
    """Growth of each path that has a baseline: 0.02 is two per cent more."""
    return {path: now / baseline[path] - 1 for path, now in found.items() if path in baseline}


def main(arguments: Sequence[str] | None = None) -> int:
    """1 when a path has grown by more than the tolerance."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__.splitlines()[0])
    parser.add_argument("--paths", nargs="+", choices=list(PATHS), default=list(PATHS))
    parser.add_argument("--few", type=int, default=2 * SET, help="jobs of the short run")
    parser.add_argument("--many", type=int, default=12 * SET, help="jobs of the long run")
    parser.add_argument("--save", action="store_true", help="make what is counted the baseline of this interpreter")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    parser.add_argument("--json", action="store_true", help="the result as one JSON object on the last line")
    options = parser.parse_args(arguments)
    try:
        found = {}
        for path in options.paths:
            note(f"counting {path}")
            found[path] = count(path, options.few, options.many)
    except BenchError as error:
        note(f"bench: {error}")
        return 2
    saved: dict[str, Any] = orjson.loads(options.baseline.read_bytes()) if options.baseline.exists() else {}
    before = saved.get(python_name(), {})
    growth = compare(found, before)
    rows = [
        (
            path,
            shown(now),
            shown(before[path]) if path in before else "-",
            f"{100 * growth[path]:+.1f} %" if path in growth else "-",
        )
        for path, now in found.items()
    ]
    say(f"instructions per job, Python {python_name()}\n")
    say(table(("path", "now", "baseline", "growth"), rows))
    if options.save:
        saved[python_name()] = before | {path: round(now) for path, now in found.items()}
        options.baseline.write_bytes(orjson.dumps(saved, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
    if options.json:
        answer({"bench": "instructions", "python": python_name(), "instructions_per_job": found, "growth": growth})
    return int(not options.save and any(share > TOLERANCE for share in growth.values()))


def _collect(path: str, jobs: int) -> int:
    """Instructions of one whole run."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise BenchError("callgrind is not installed: apt-get install valgrind")
    command = [
        valgrind,
        "--tool=callgrind",
        "--instr-atstart=no",
        "--callgrind-out-file=/dev/null",
        sys.executable,
        "-m",
        "bench.paths",
        path,
        str(jobs),
    ]
    # A fixed seed: the order of sets and dictionaries decides how much work a lookup is.
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), COUNTED: "1"}
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    collected = _COLLECTED.search(done.stderr)
    if done.returncode or collected is None:
        raise BenchError(f"callgrind failed on {path}:\n{done.stderr.decode(errors='replace')[-2000:]}")
    return int(collected[1].replace(b" ", b""))


if __name__ == "__main__":
    sys.exit(main())
