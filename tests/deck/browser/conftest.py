"""A browser for all stories of a run, and a fresh house and page for each."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from tests.deck.conftest import CHROMIUM
from tests.support.lab import Lab

from .house import PATIENCE, House

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
OpenPage = Callable[..., Page]
_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a story failed: its pages are kept as pictures."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. For this package only: while it runs, no other event loop can run in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def house(tmp_path: Path, store_options: DatabaseSettings, session: Session, lab: Lab) -> Iterator[House]:
    """The programs of one story."""
    house = House(tmp_path, store_options, session, lab)
    yield house
    house.end()


@pytest.fixture
def pages(chromium: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenPage]:
    """Opens pages, each a viewer of its own; a page that logs an error fails the story.

    What the pages of a failed story showed at its end is kept as `page-….png` in the story's folder.
    """
    problems: list[str] = []
    opened: list[Page] = []

    def note(message: ConsoleMessage) -> None:
        # What a refusal answers is logged by the browser itself.
        if (
            message.type == "error"
            and "Failed to load resource" not in message.text
            and "WebSocket" not in message.text
        ):
            problems.append(message.text)

    def open_page(*, width: int = 1280, height: int = 800, theme: str = "light", zone: str = "Europe/Berlin") -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            timezone_id=zone,
            locale="en-GB",
            accept_downloads=True,
        )  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        opened.append(page)
        return page

    yield open_page
    for number, page in enumerate(opened):
        if request.node.stash.get(_FAILED, False):
            page.screenshot(path=tmp_path / f"page-{number}.png")
        page.context.close()
    assert problems == []


@pytest.fixture
def page(pages: OpenPage) -> Page:
    """One page, at 1280 by 800."""
    return pages()
