"""Which programs an installed schema serves.

A program's version is the number of the last schema file it brings. Schema first, programs after: a program never works on an
older schema. On a newer one it does as long as every file it does not know says that programs of its version can live with it, so
that old and new programs work side by side during a rolling deploy, and the old ones can come back.
"""

import re
from typing import NamedTuple

from chokaq.store.errors import SchemaMismatch

_SERVES = re.compile(r"(?m)^-- Serves: programs from version (\d+) on\.$")
FIRST_RELEASED = 4
"""The version of release 0.1.0, which compares for equality: it is shown this number as long as it is served."""


class Installed(NamedTuple):
    """What a database holds."""

    version: int
    """The highest schema file applied."""
    oldest: int
    """Programs from this version on are served."""


def serves(text: str, version: int) -> int:
    """From which version on programs work with a numbered file: what its header says, else its own number."""
    found = _SERVES.search(text)
    return version if found is None else int(found[1])


def is_served(installed: Installed | None, program: int) -> bool:
    """Whether a program of this version may work here."""
    return installed is not None and installed.oldest <= program <= installed.version


def check_served(installed: Installed | None, program: int, place: str) -> None:
    """Raises SchemaMismatch, naming the way out, unless a program of this version may work here."""
    if installed is None or installed.version < program:
        raise SchemaMismatch(
            f"{place}: the schema is at version {'none' if installed is None else installed.version}, this program needs "
            f"{program}: run `chokaq schema apply`"
        )
    if installed.oldest > program:
        raise SchemaMismatch(
            f"{place}: the schema is at version {installed.version}, newer than this program knows ({program}), and serves "
            f"programs from version {installed.oldest} on: install a newer chokaq"
        )


def is_newer(installed: Installed, program: int) -> bool:
    """True when the schema has what this program does not know, and serves it all the same."""
    return is_served(installed, program) and installed.version > program
