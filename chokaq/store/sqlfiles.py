"""Where the SQL of the stores lies: `sql/` in a checkout, `chokaq/sql/` inside the wheel."""

from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["schema", "procedures", "embedded"]


@cache
def folder() -> Path:
    """The folder that holds `schema/`, `procedures/` and `embedded/`. Raises FileNotFoundError for a broken installation."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "sql", package.parent / "sql"):
        if (candidate / "schema").is_dir():
            return candidate
    raise FileNotFoundError("chokaq is installed without its SQL files (chokaq/sql): install it again")


@cache
def read(kind: Kind, name: str) -> str:
    """The text of `sql/<kind>/<name>.sql`. Raises FileNotFoundError when there is no such file."""
    return (folder() / kind / f"{name}.sql").read_text(encoding="utf-8")


def names(kind: Kind) -> list[str]:
    """The names of all files of a kind, without `.sql`, sorted: `001_pillars` comes before `ArchiveFailed`."""
    return sorted(path.stem for path in (folder() / kind).glob("*.sql"))
