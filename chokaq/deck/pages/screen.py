"""One open page: the frame around it, how fresh its data is, and what happens when somebody presses something."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from urllib.parse import urlencode

import structlog
from nicegui import ui
from starlette.requests import Request

from chokaq.deck import theme
from chokaq.deck.access import user_of
from chokaq.deck.desk import Desk
from chokaq.deck.live import Subscription
from chokaq.deck.pages.fragment import Fragment
from chokaq.deck.pages.frame import banner, top
from chokaq.deck.pages.nodes import Node, el
from chokaq.deck.pages.part import Part
from chokaq.operations.errors import OperationError
from chokaq.store.errors import StoreError

log = structlog.get_logger("chokaq")
Handler = Callable[[object], Awaitable[None] | None]
FIRST_READ = 1.5
"""Seconds a page waits for its data before it is shown without them."""
ANSWERLESS = (
    "The database does not answer. Whether this was done will be seen once it is back: the page says so by itself."
)


class Screen:
    """What every page holds: the desk, who looks, and the parts that are read again when something changes."""

    def __init__(self, desk: Desk, request: Request, title: str, here: str) -> None:
        """`here`: the entry of the navigation this page belongs to."""
        self.desk, self.user = desk, user_of(request)
        self.client = ui.context.client
        self._title, self._here = title, here
        # Below the desk, and without the query: filters and cursors mean nothing in another database.
        self._path = request.url.path.removeprefix(desk.base) or "/"
        self._acts: dict[str, Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        ui.page_title(f"{title} · {desk.settings.deck.title}")
        ui.add_head_html(_head(desk.root, desk.base))
        self._top = Fragment(self.act)
        self._banner = Fragment(self.act)
        self.main = ui.element("main").props("id=main tabindex=-1")
        self.overlay = ui.element("div")
        self.show_state()

    # ── links ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def url(self, path: str, query: dict[str, str] | None = None) -> str:
        """A path of The Deck as the browser needs it."""
        return f"{self.desk.base}{path}" + (f"?{urlencode(query)}" if query else "")

    def job_url(self, job_id: str) -> str:
        """The page of a job."""
        return self.url(f"/jobs/{job_id}")

    # ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def open(self, *parts: Part) -> None:
        """Read the parts for the first time; those that take long are filled in later."""
        tasks = [self.spawn(part.refresh()) for part in parts]
        if tasks:
            await asyncio.wait(tasks, timeout=FIRST_READ)
        self.show_state()

    def listen(self, topic: str, *parts: Part, told: Callable[[], Awaitable[None]] | None = None) -> Subscription:
        """Read the parts again (or call `told`) whenever something of the topic changes, until the page is closed."""

        async def changed() -> None:
            if self._is_over():
                return
            self.show_state()
            if told is not None:
                await told()
            for part in parts:
                await part.refresh()

        subscription = self.desk.live.subscribe(topic, changed)
        self.client.on_delete(subscription.close)
        return subscription

    def spawn(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Do something beside the page; the task is kept until it ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def show_state(self) -> None:
        """Say who looks, at what, and whether it is fresh."""
        state = self.desk.live.state
        self._top.show(*top(self.desk, self.user, self._here, state, self._path))
        self._banner.show(*banner(state))
        self.main.classes(add="stale" if state.stale_since else "", remove="" if state.stale_since else "stale")

    # ── what the viewer does ──────────────────────────────────────────────────────────────────────────────────────────
    def on(self, act: str, handler: Handler) -> None:
        """Call `handler(value)` when the viewer does `act`."""
        self._acts[act] = handler

    async def act(self, name: str, value: object) -> None:
        """Do what was pressed; a refusal is shown and changes nothing."""
        if self._is_over():
            return
        handler = self._acts.get(name)
        if handler is None:
            return
        problem = await attempt(handler, value)
        if problem is not None:
            self.tell(problem, bad=True)

    def _is_over(self) -> bool:
        """Whether the sign-in has ended since the page was opened; then the page gives way to the form."""
        if not self.desk.access.is_over(self.user):
            return False
        with self.overlay:
            ui.navigate.to(f"{self.desk.root}/login")
        return True

    def tell(self, text: str, *, bad: bool = False) -> None:
        """A passing note."""
        with self.overlay:
            ui.notify(
                text,
                position="bottom-right",
                timeout=8_000 if bad else 4_000,
                multi_line=True,
                classes="note bad" if bad else "note",
            )

    def place(self, *tree: Node) -> Fragment:
        """A place at the end of the page."""
        with self.main:
            return Fragment(self.act, tree)

    def heading(self, text: str, *beside: Node) -> Fragment:
        """The page's heading, with what stands beside it."""
        return self.place(el("div.head", el("h1", text), *beside))

    def part(self, read: Callable[[], Awaitable[object]], draw: Callable[..., Sequence[Node]]) -> Part:
        """A part at the end of the page: `draw(await read())`."""
        return Part(self.place(), read, draw)


async def attempt(handler: Handler, value: object) -> str | None:
    """Call it; why it was refused, in words, or None."""
    try:
        done = handler(value)
        if done is not None:
            await done
    except OperationError as error:
        return str(error)
    except StoreError:
        return ANSWERLESS
    except Exception:
        # A dialog must not stay busy for ever.
        log.exception("deck_action_failed")
        return "The Deck itself has failed here, and has logged how. Look at the job or queue before you try again."
    return None


def _head(root: str, base: str) -> str:
    style, script = (f"{root}{theme.ROUTE}/{name}?v={theme.version(name)}" for name in ("deck.css", "deck.js"))
    now = round(time.time() * 1_000)
    return (
        f'<script>window.chokaqSkew={now}-Date.now();window.chokaqBase="{base}";</script>'
        f'<script src="{script}"></script><link rel="stylesheet" href="{style}">'
    )
