"""The lists of jobs: one search over Hot, Archive and DLQ. What is shown stands in the address, so that it can be sent on."""

from msgspec.structs import replace
from nicegui import ui

from chokaq.deck import reads, topics
from chokaq.deck.live import Subscription
from chokaq.deck.pages.filters import bar, changed
from chokaq.deck.pages.jobs_actions import JobActions
from chokaq.deck.pages.jobs_table import job_table
from chokaq.deck.pages.nodes import Node, button, el
from chokaq.deck.pages.pager import Pager, older_button
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.shown import JobsPage, Search
from chokaq.lifecycle.states import Pillar
from chokaq.operations.errors import OperationError
from chokaq.store.errors import StoreError

SIZES = (50, 100, 200)


class JobsScreen:
    """A list under a filter, page by page."""

    def __init__(self, screen: Screen, query: dict[str, str]) -> None:
        """`query`: the parameters of the address. Raises OperationError for one that means nothing."""
        self.screen = screen
        rest = dict(query)
        self.limit = _size(rest.pop("limit", None))
        self._pager = Pager(rest.pop("after", None))
        self.where = reads.search_of(rest)
        self.selected: dict[str, None] = {}
        self._queues: list[str] = []
        self._moved = False
        self._bar = screen.place()
        self._tools = screen.place()
        self.part = screen.part(self._read, self._draw)
        self._foot = screen.place()
        self._subscription: Subscription | None = None
        self.actions = JobActions(self)
        for act, handler in (
            ("filter", self._filter),
            ("pillar", self._filter),
            ("select", self._select),
            ("select-all", self._select_all),
            ("older", self._older),
            ("newer", self._newer),
            ("first", self._first),
            ("size", self._resize),
            ("sort", self._sort),
            ("clear", self._clear),
            ("again", self._again),
        ):
            screen.on(act, handler)

    async def open(self) -> None:
        """Read, then listen."""
        await self._name_queues()
        self._draw_bar()
        await self.screen.open(self.part)
        self.draw_tools()
        self._listen()

    # ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _read(self) -> JobsPage:
        return await self.screen.desk.reads.jobs(self.where, self.limit, self._pager.after)

    async def _name_queues(self) -> None:
        try:
            self._queues = [row.queue.name for row in await self.screen.desk.reads.queues()]
        except (StoreError, OperationError):
            self._queues = [self.where.queue] if self.where.queue else []

    def _listen(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
        rest = reads.to_query(self.where) | {"limit": str(self.limit), "after": self._pager.after or ""}
        topic = topics.job_list(self.where.pillar, self.where.queue, rest)
        self._subscription = self.screen.listen(topic, told=self._told)
        self._watch()

    def _watch(self) -> None:
        if self._subscription is not None and isinstance(self.part.data, JobsPage):
            self._subscription.watch([job.id for job in self.part.data.jobs])

    async def _told(self) -> None:
        if self.selected:
            # Rows must not move under somebody who is choosing.
            self._moved = True
            self.draw_tools()
        else:
            await self.refresh()

    async def refresh(self) -> None:
        """Read the page again, as it stands."""
        self._moved = False
        await self.part.refresh()
        self._watch()
        self.draw_tools()

    async def after_action(self) -> None:
        """Forget the selection and read again."""
        self.selected.clear()
        await self.refresh()

    # ── looks ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _draw_bar(self) -> None:
        self._bar.show(*bar(self.where, self._queues))

    def _draw(self, page: JobsPage) -> list[Node]:
        if not page.jobs:
            self._draw_foot(page)
            return [self._nothing(page)]
        self._draw_foot(page)
        return [job_table(self.screen, page.jobs, self.where, self.selected)]

    def _nothing(self, page: JobsPage) -> Node:
        if page.partial:
            return empty(
                f"None of the {page.examined:,} jobs looked at so far fits.",
                "Older ones have not been looked at.",
                button("older", "Look further"),
            )
        if self._pager.after is not None:
            return empty(
                "There are no jobs beyond here.",
                "They may have moved on since the page before.",
                button("first", "To the first page"),
            )
        if reads.to_query(replace(self.where, pillar=None, sort="created", descending=True)):
            return empty("No job fits this filter.", "", button("clear", "Show all"))
        return empty(_EMPTY[self.where.pillar][0], _EMPTY[self.where.pillar][1])

    def draw_tools(self) -> None:
        """The bar above the table: what may be done with what is selected."""
        self._tools.show(self.actions.bar(self._moved))

    def _draw_foot(self, page: JobsPage) -> None:
        told = (
            f"Page {self._pager.turned + 1} · {len(page.jobs):,} jobs"
            if not (self._pager.after and not self._pager.turned)
            else f"{len(page.jobs):,} jobs from here on"
        )
        searched = None
        if page.partial:
            searched = el(
                "span.note-line", f"This page looked at {page.examined:,} jobs, which is the most it does at once."
            )
        elif self.where.text:
            searched = el("span.faint", f"searched {page.examined:,} jobs, newest first")
        self._foot.show(
            el(
                "div.pager",
                button("first", "First", disabled=self._pager.after is None),
                self._pager.newer_button(),
                el("span", told),
                searched,
                older_button(page.after, "Look further" if page.partial else "Older"),
                el(
                    "label.inline",
                    "Rows ",
                    el(
                        "select",
                        *(el("option", str(size), value=str(size)) for size in SIZES),
                        act="size",
                        initial=str(self.limit),
                        aria_label="Rows per page",
                    ),
                ),
            )
        )

    # ── what the viewer does ──────────────────────────────────────────────────────────────────────────────────────────
    async def _go(self, *, push: bool = True) -> None:
        query = reads.to_query(self.where)
        if self.limit != SIZES[0]:
            query["limit"] = str(self.limit)
        if self._pager.after is not None:
            query["after"] = self._pager.after
        address = self.screen.url("/jobs", query)
        with self.screen.overlay:
            (ui.navigate.history.push if push else ui.navigate.history.replace)(address)
        self.selected.clear()
        self._draw_bar()
        await self.refresh()
        self._listen()

    async def _show(self, where: Search) -> None:
        self.where = where
        self._pager.first()
        await self._go()

    async def _filter(self, value: object) -> None:
        values = value if isinstance(value, dict) else {"pillar": value}
        await self._show(changed(self.where, values))

    async def _clear(self, _: object) -> None:
        await self._show(Search(pillar=self.where.pillar))

    async def _sort(self, value: object) -> None:
        by: str = str(value)
        descending = not self.where.descending if self.where.sort == by else True
        await self._show(replace(self.where, sort=by, descending=descending))

    async def _older(self, _: object) -> None:
        if isinstance(self.part.data, JobsPage) and self._pager.older(self.part.data.after):
            await self._go()

    async def _newer(self, _: object) -> None:
        if self._pager.newer():
            await self._go()

    async def _first(self, _: object) -> None:
        self._pager.first()
        await self._go()

    async def _resize(self, value: object) -> None:
        self.limit = _size(str(value))
        self._pager.first()
        await self._go(push=False)

    async def _again(self, _: object) -> None:
        await self.refresh()

    def _select(self, value: object) -> None:
        if isinstance(value, str):
            if value in self.selected:
                del self.selected[value]
            else:
                self.selected[value] = None
            self._chosen()

    def _select_all(self, _: object) -> None:
        shown = [job.id for job in self.part.data.jobs] if isinstance(self.part.data, JobsPage) else []
        if all(job_id in self.selected for job_id in shown):
            self.selected.clear()
        else:
            self.selected.update(dict.fromkeys(shown))
        self._chosen()

    def _chosen(self) -> None:
        self.part.redraw()
        self.draw_tools()


_EMPTY: dict[Pillar | None, tuple[str, str]] = {
    None: ("There is no job anywhere.", "Enqueue the first one: it appears here by itself."),
    Pillar.HOT: ("Nothing waits and nothing runs.", "New jobs appear here by themselves."),
    Pillar.ARCHIVE: (
        "No succeeded job is kept.",
        "Succeeded jobs stay for the retention of their queue (7 days when nothing else is said).",
    ),
    Pillar.DLQ: (
        "The DLQ is empty: no job has stopped.",
        "Jobs that fail for good, are cancelled or lose their owner would stand here.",
    ),
}


def _size(text: str | None) -> int:
    try:
        wanted = int(text or SIZES[0])
    except ValueError:
        wanted = SIZES[0]
    return wanted if wanted in SIZES else SIZES[0]
