"""Which page of a list is shown: forward by the cursor that a page gives, back by those that were shown before it."""

from chokaq.deck.pages.nodes import Node, button


class Pager:
    """Remembers the place; whoever turns the page reads again."""

    def __init__(self, after: str | None) -> None:
        """`after`: the cursor to begin at, as the address has it; None: the first page."""
        self.after = after
        self._before: list[str | None] = []

    @property
    def turned(self) -> int:
        """How many pages one can go back."""
        return len(self._before)

    def first(self) -> None:
        """To the first page."""
        self.after = None
        self._before.clear()

    def older(self, after: str | None) -> bool:
        """To the page behind this cursor; False when the page shown is the last one."""
        if after is None:
            return False
        self._before.append(self.after)
        self.after = after
        return True

    def newer(self) -> bool:
        """Back to the page before; False when there is none."""
        if not self._before:
            return False
        self.after = self._before.pop()
        return True

    def newer_button(self) -> Node:
        """Sends `newer`."""
        return button("newer", "Newer", disabled=not self._before)


def older_button(after: str | None, text: str = "Older") -> Node:
    """Sends `older`; `after`: the cursor that the page shown gives."""
    return button("older", text, disabled=after is None)
