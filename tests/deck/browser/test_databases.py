"""Several databases in one Deck: which one is shown, and the way to the others."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from chokaq.store.protocol import Session
from chokaq.store.records import NewJob
from tests.support.ids import new_id
from tests.support.lab import Lab

from .house import House


class TwoHouses(House):
    """`emails` in main, `reports` in archive."""

    databases: dict[str, DatabaseSettings]

    def _config(self) -> dict[str, object]:
        config = super()._config()
        del config["database"]
        config["databases"] = {name: {"url": one.url, "schema": one.schema} for name, one in self.databases.items()}
        config["queues"]["reports"]["database"] = "archive"
        return config


@pytest.fixture
def two(
    tmp_path: Path, databases: dict[str, DatabaseSettings], store_options: DatabaseSettings, lab: Lab
) -> Iterator[TwoHouses]:
    """The programs of one story; `session` is that of main."""
    assert store_options == databases["main"]
    with closing(open_store(databases["main"]).session()) as session:
        house = TwoHouses(tmp_path, databases["main"], session, lab)
        house.databases = databases
        yield house
        house.end()


def put(session: Session) -> str:
    """A report that waits."""
    [answer] = session.enqueue_jobs([NewJob(id=new_id(), queue="reports", type_key="report.v1", payload="{}")])
    return answer.id


def test_the_header_says_which_database_is_shown_and_leads_to_the_other(two: TwoHouses, page: Page) -> None:
    [mail] = two.enqueue("email.send.v1", to="a@example.com")
    with closing(open_store(two.databases["archive"]).session()) as there:
        report = put(there)
        page.goto(f"{two.serve()}/jobs")
        switch = page.get_by_role("navigation", name="Databases")
        expect(switch.locator("a[aria-current]")).to_have_text("main")
        expect(page.locator("#main")).to_contain_text(mail[-6:])
        expect(page.locator("#main")).not_to_contain_text(report[-6:])
        if os.environ.get("CHOKAQ_TEST_DECK_SCREENSHOTS"):
            page.screenshot(path=Path(os.environ["CHOKAQ_TEST_DECK_SCREENSHOTS"]) / "databases.png")
        switch.get_by_role("link", name="archive").click()
        expect(page).to_have_url(f"{two.url}/db/archive/jobs")
        expect(switch.locator("a[aria-current]")).to_have_text("archive")
        expect(page.locator("#main")).to_contain_text(report[-6:])
        # From here on everything stays in it, and is live.
        page.keyboard.press("g")
        page.keyboard.press("q")
        expect(page).to_have_url(f"{two.url}/db/archive/queues")
        expect(page.locator("#main")).to_contain_text("reports")
        page.get_by_role("link", name="Jobs", exact=True).first.click()
        later = put(there)
        expect(page.locator("#main")).to_contain_text(later[-6:])
        # A link to a job of the other one says where it is.
        page.goto(f"{two.url}/jobs/{report}")
        expect(page.get_by_role("alert")).to_contain_text("The database archive holds it")
        switch.get_by_role("link", name="archive").click()
        expect(page).to_have_url(f"{two.url}/db/archive/jobs/{report}")
        expect(page.locator("#main")).to_contain_text("report.v1")


def test_on_a_phone_it_is_said_too(two: TwoHouses, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{two.serve()}/")
    switch = page.get_by_role("navigation", name="Databases")
    expect(switch.get_by_role("link", name="archive")).to_be_visible()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, width
    if os.environ.get("CHOKAQ_TEST_DECK_SCREENSHOTS"):
        page.screenshot(path=Path(os.environ["CHOKAQ_TEST_DECK_SCREENSHOTS"]) / "databases-phone.png")
