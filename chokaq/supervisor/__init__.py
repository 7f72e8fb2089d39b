"""The parent of all worker processes."""

from chokaq.supervisor.exits import ProgramExit
from chokaq.supervisor.program import run

__all__ = ["ProgramExit", "run"]
