"""The one gate through which every procedure is called."""

from typing import Any

from chokaq.store.sqlserver.link import Link, Rows


class Calling:
    """Base of the operations: a session with its link."""

    def __init__(self, link: Link) -> None:
        """`link`: open."""
        self._link = link

    def _call(self, procedure: str, *args: Any) -> list[Rows]:
        """Run a procedure with its parameters in order; its result sets.

        A deadlock victim is tried again here, since every procedure may be called again with the same arguments.
        """
        return self._link.call(procedure, args)
