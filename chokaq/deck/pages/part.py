"""A part of a page: what it reads, how it is drawn, and what it shows while there is nothing to draw."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from chokaq.deck.pages.fragment import Fragment
from chokaq.deck.pages.nodes import Node, el
from chokaq.operations.errors import OperationError
from chokaq.store.errors import StoreError


class Part:
    """Reads, then draws. What was read last stays when the database is away."""

    def __init__(
        self, fragment: Fragment, read: Callable[[], Awaitable[object]], draw: Callable[..., Sequence[Node]]
    ) -> None:
        """Where it stands, what it reads, how that looks."""
        self.fragment = fragment
        self.data: object = None
        self._read, self._draw = read, draw
        self._turn = asyncio.Lock()
        fragment.show(el("div.quiet-note", "Reading…"))

    async def refresh(self) -> None:
        """Read again, one at a time."""
        async with self._turn:
            try:
                data = await self._read()
            except OperationError as error:
                self.data = None
                self.fragment.show(problem(str(error)))
            except StoreError:
                if self.data is None:
                    self.fragment.show(
                        problem(
                            "The database does not answer: there is nothing to show yet. It is asked again by itself."
                        )
                    )
            else:
                self.data = data
                self.redraw()

    def redraw(self) -> None:
        """Draw what was read last."""
        if self.data is not None:
            self.fragment.show(*self._draw(self.data))


def problem(text: str, *more: Node) -> Node:
    """What went wrong, for people."""
    return el("div.problem", el("p", text), *more, role="alert")


def empty(text: str, hint: str = "", *more: Node) -> Node:
    """That there is nothing, and why that may be."""
    return el("div.empty", el("p", text), el("p.faint", hint) if hint else None, *more)
