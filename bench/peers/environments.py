"""An environment of its own for every peer, under the bench's cache folder; never in the one that chokaq is installed in."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bench.output import note
from bench.peers.catalogue import Peer
from bench.stage import HOME
from bench.target import BenchError

_VERSION = re.compile(r"Python (\d+)\.(\d+)")


def python_of(peer: Peer) -> Path:
    """The interpreter of a peer, its packages installed. Raises BenchError when this host cannot have it."""
    if not peer.requirements:
        return Path(sys.executable)
    folder = HOME / "environments" / peer.name
    stamp, wanted = folder / "requirements", "\n".join(peer.requirements)
    python = folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        note(f"installing {peer.label}: {', '.join(peer.requirements)}")
        shutil.rmtree(folder, ignore_errors=True)
        _run([str(find_python(peer.python)), "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *peer.requirements])
        stamp.write_text(wanted)
    return python


def find_python(least: tuple[int, int]) -> Path:
    """An interpreter of at least that version; our own when it will do."""
    if sys.version_info[:2] >= least:
        # The one our own environment was made of: an environment inside another would see its packages.
        return Path(getattr(sys, "_base_executable", sys.executable))
    names = [f"python3.{minor}" for minor in range(least[1], least[1] + 4)]
    candidates = [Path(found) for name in names if (found := shutil.which(name))]
    candidates += sorted(Path.home().glob(".pyenv/versions/*/bin/python3"))
    for candidate in candidates:
        if (version := _version(candidate)) is not None and version >= least:
            return candidate
    raise BenchError(f"there is no Python {least[0]}.{least[1]} or later on this host")


def _version(python: Path) -> tuple[int, int] | None:
    done = subprocess.run([str(python), "--version"], capture_output=True, text=True, check=False)
    found = _VERSION.search(done.stdout)
    return None if done.returncode or found is None else (int(found[1]), int(found[2]))


def _run(command: list[str]) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command[:4])} … failed:\n{done.stderr[-1000:]}")
