"""How many jobs of each priority of one queue are due, and how long the oldest has waited: a low priority that starves is seen."""

from chokaq.deck.pages import words
from chokaq.deck.pages.nodes import Node, el, link
from chokaq.deck.pages.part import Part, empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td, th
from chokaq.deck.shown import PriorityRow

COUNTED = 10_000
"""The store counts no further per priority."""
SHOWN = 100
"""The store answers with so many priorities at most, those that have waited longest."""


class PrioritiesPart:
    """Below the table of queues."""

    def __init__(self, screen: Screen, queue: str) -> None:
        """`queue`: its name, as the address has it."""
        self._screen, self._queue = screen, queue
        screen.place(
            el(
                "div.head.sub",
                el("h2", f"{queue} by priority"),
                el("span.faint", "jobs that are due; the highest priority is claimed first"),
                link(screen.url("/queues"), "Hide"),
            )
        )
        self.part: Part = screen.part(self._read, self._draw)

    async def _read(self) -> list[PriorityRow]:
        return await self._screen.desk.reads.priorities(self._queue)

    def _draw(self, rows: list[PriorityRow]) -> list[Node]:
        if not rows:
            return [empty("No job of this queue is due.", "Those for later are not waiting yet.")]
        most = max(row.priority.waiting for row in rows)
        headings = head(
            th("Priority", kind="num"),
            th("Waiting", kind="num"),
            "",
            th("Lag", kind="num", title="How long the oldest due job of this priority waits"),
        )
        shown = table(headings, [_row(row, most) for row in rows], "rows.priorities", f"{self._queue} by priority")
        if len(rows) < SHOWN:
            return [shown]
        return [shown, el("p.faint.small", f"These are the {SHOWN} priorities that have waited longest.")]


def _row(row: PriorityRow, most: int) -> Node:
    one = row.priority
    more = "+" if one.waiting >= COUNTED else ""
    return el(
        "tr",
        td("Priority", el("b", f"{one.priority}"), kind="num"),
        td("Waiting", f"{one.waiting:,}{more}", kind="num"),
        td(
            "",
            el(
                "span.meter", el("i", style=f"width:{one.waiting / most * 100 if most else 0:.0f}%"), aria_hidden="true"
            ),
            kind="share",
        ),
        td("Lag", el(f"span.lag.{row.lag}", words.duration(one.oldest_due_ms), title=f"lag: {row.lag}"), kind="num"),
        key=one.priority,
    )
