"""The element behind every page: shows a tree of nodes and reports what the viewer does in it."""

from collections.abc import Awaitable, Callable, Sequence

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from chokaq.deck.pages.nodes import Node

Act = Callable[[str, object], Awaitable[None]]


class Fragment(Element, component="static/chokaq_fragment.js"):
    """A part of a page. Showing another tree changes only what differs, so nothing jumps and nothing loses the focus."""

    def __init__(self, act: Act, tree: Sequence[Node] = ()) -> None:
        """`act`: called with the name and the value of what was clicked, changed or submitted."""
        super().__init__()
        self._props["tree"] = list(tree)

        async def told(event: GenericEventArguments) -> None:
            name, value = event.args
            await act(str(name), value)

        self.on("act", told)

    def show(self, *tree: Node) -> None:
        """Show this tree; nothing is sent when it is the one that is shown."""
        fresh = [node for node in tree if node is not None]
        if fresh != self._props["tree"]:
            self._props["tree"] = fresh
            self.update()
