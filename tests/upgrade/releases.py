"""The released versions, as recorded in releases.json, and their programs, taken out of the repository's history.

At a release: `python -m tests.upgrade.releases 0.2.0 HASH` records the schema files and procedures of that commit.
"""

import atexit
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from tests.support.processes import ROOT
from tests.upgrade.shapes import Shape, shape

FILE = Path(__file__).with_name("releases.json")


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One released version."""

    version: str
    commit: str
    """Full hash."""
    schema_version: int
    """Of its last numbered schema file."""
    exact_rows: bool = False
    """It takes rows apart by their exact width: no result may gain a column (since 5 programs cut off what they do not know)."""
    schema: dict[str, str]
    """Numbered files below sql/, with their SHA-256: frozen."""
    procedures: dict[str, Shape]


def releases() -> list[Release]:
    """All of them, the oldest first."""
    return msgspec.json.decode(FILE.read_bytes(), type=list[Release])


def is_here(release: Release) -> bool:
    """Whether the repository's history holds its commit: a shallow clone, an archive and an installed package do not."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return False
    found = subprocess.run(
        ["git", "-C", ROOT, "cat-file", "-e", f"{release.commit}^{{commit}}"], capture_output=True, check=False
    )
    return found.returncode == 0


@cache
def tree(commit: str) -> Path:
    """The folder of a commit's program, to be put on PYTHONPATH."""
    folder = Path(tempfile.mkdtemp(prefix="chokaq-release-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    packed = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def numbered(folder: Path) -> dict[str, str]:
    """The numbered schema files of a tree, as they are recorded."""
    found = sorted([*folder.glob("sql/schema/[0-9]*.sql"), *folder.glob("sql/embedded/[0-9]*.sql")])
    return {f"{path.parent.name}/{path.name}": sha256(path.read_bytes()).hexdigest() for path in found}


def shapes(folder: Path) -> dict[str, Shape]:
    """The procedures of a tree, as they are recorded."""
    return {path.stem: shape(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("sql/procedures/*.sql"))}


def record(version: str, commit: str) -> None:
    """Add a release to the file."""
    asked = ["git", "-C", ROOT, "rev-parse", f"{commit}^{{commit}}"]
    full = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.strip()
    schema = numbered(tree(full))
    fresh = Release(
        version=version,
        commit=full,
        schema_version=max(int(name.rpartition("/")[2][:3]) for name in schema),
        schema=schema,
        procedures=shapes(tree(full)),
    )
    known = [release for release in (releases() if FILE.exists() else []) if release.version != version]
    FILE.write_text(_text([*known, fresh]), encoding="utf-8")


def _text(all_of_them: list[Release]) -> str:
    """One line per schema file and per procedure, so that a difference can be read."""
    entries = []
    for release in all_of_them:
        parts = []
        for name, value in msgspec.to_builtins(release).items():
            if isinstance(value, dict):
                lines = ",\n".join(f"   {_json(key)}: {_json(item)}" for key, item in value.items())
                parts.append(f"  {_json(name)}: {{\n{lines}\n  }}")
            else:
                parts.append(f"  {_json(name)}: {_json(value)}")
        entries.append(" {\n" + ",\n".join(parts) + "\n }")
    return "[\n" + ",\n".join(entries) + "\n]\n"


def _json(value: object) -> str:
    return json.dumps(value)


if __name__ == "__main__":
    record(*sys.argv[1:])
