"""The database goes away: the page says so, keeps what it showed, and goes on by itself."""

import pytest
from playwright.sync_api import Page, expect

from .house import House, row

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


def test_the_last_data_stay_marked_stale_and_the_page_recovers_without_a_reload(house: House, page: Page) -> None:
    [first] = house.enqueue("email.send.v1", to="a@example.com")
    house.through_a_proxy()
    page.goto(f"{house.serve()}/jobs?pillar=hot")
    expect(row(page, first)).to_be_visible()
    page.evaluate("window.sameDocument = true")
    with house.without_database():
        expect(page.get_by_text("The database does not answer")).to_be_visible()
        expect(page.get_by_text("stale", exact=True)).to_be_visible()
        expect(row(page, first)).to_be_visible()
        page.goto(f"{house.url}/workers")
        expect(page.get_by_text("there is nothing to show yet")).to_be_visible()
        page.evaluate("window.sameDocument = true")
    expect(page.get_by_text("No worker is running.")).to_be_visible()
    expect(page.get_by_text("The database does not answer")).to_have_count(0)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert page.evaluate("window.sameDocument") is True
