"""Lists: kept in the address, live, sorted, paged, and without delay over very many rows."""

import os
import time

import pytest
from playwright.sync_api import Page, expect

from chokaq.lifecycle.states import JobStatus
from tests.support.jobs import new_jobs
from tests.support.lab import Lab
from tests.support.stopped import fail

from .fill import fill_archive, fill_dlq
from .house import House, menu, row

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


def test_a_filter_stands_in_the_address_and_means_the_same_to_whoever_opens_it(house: House, page: Page) -> None:
    house.enqueue("email.send.v1", 2, to="a@example.com")
    house.enqueue("report.build.v1", 1, name="yearly")
    page.goto(f"{house.serve()}/jobs?pillar=hot")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_label("Queue", exact=True).select_option("reports")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(f"{house.url}/jobs?pillar=hot&queue=reports")
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Queue", exact=True)).to_have_value("reports")
    page.get_by_label("Search", exact=True).fill("no such thing")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No job fits this filter.")).to_be_visible()
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Search", exact=True)).to_have_value("")


def test_an_address_that_means_nothing_says_which_part_of_it(house: House, page: Page) -> None:
    page.goto(f"{house.serve()}/jobs?pillar=attic")
    expect(page.get_by_role("alert")).to_contain_text("pillar")
    page.get_by_role("link", name="Show all jobs").click()
    expect(page.get_by_text("There is no job anywhere.")).to_be_visible()


def test_a_new_job_appears_by_itself_and_nothing_moves_while_figures_change(house: House, page: Page) -> None:
    page.goto(f"{house.serve()}/jobs?pillar=hot")
    expect(page.get_by_text("Nothing waits and nothing runs.")).to_be_visible()
    [first] = house.enqueue("email.send.v1", to="a@example.com")
    expect(row(page, first)).to_be_visible()
    menu(page, "Overview").click()
    pending = page.locator("a.tile", has_text="Pending")
    expect(pending).to_contain_text("1")
    before = page.get_by_label("Throughput").bounding_box()
    house.enqueue("email.send.v1", 120, to="a@example.com")
    expect(pending).to_contain_text("121")
    assert page.get_by_label("Throughput").bounding_box() == before


def test_a_page_after_the_other_by_the_keyboard_alone(house: House, page: Page) -> None:
    ids = house.enqueue("email.send.v1", 120, to="a@example.com")
    page.goto(house.serve())
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(row(page, ids[-1])).to_be_visible()
    page.get_by_role("button", name="Older").focus()
    page.keyboard.press("Enter")
    expect(row(page, ids[69])).to_be_visible()
    expect(page.get_by_text("Page 2")).to_be_visible()
    page.get_by_role("button", name="Older").press("Enter")
    expect(page.locator("tbody tr")).to_have_count(20)
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    page.get_by_role("button", name="Newer").press("Enter")
    expect(row(page, ids[69])).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Search", exact=True)).to_be_focused()


def test_stopped_jobs_are_sorted_by_when_they_stopped_either_way(house: House, page: Page, lab: Lab) -> None:
    ids = fail(house.session, new_jobs(3, queue="emails"), queue="emails")
    lab.age(ids[1], "FailedAtUtc", 3_600_000, "JobsDLQ")
    page.goto(f"{house.serve()}/jobs?pillar=dlq")
    page.get_by_role("button", name="Ended").click()
    expect(page.locator("tbody tr").last).to_contain_text(ids[1])
    page.get_by_role("button", name="Ended").click()
    expect(page.locator("tbody tr").first).to_contain_text(ids[1])
    expect(page.locator("tbody tr").first.locator("[data-label=Ended] time")).to_have_text("1 h ago")
    assert house.session.get_statuses(ids) == [JobStatus.FAILED] * 3


def test_a_million_rows_in_the_archive_and_a_hundred_thousand_in_the_dlq_are_paged_and_searched_without_delay(
    house: House, page: Page, lab: Lab, store_kind: str
) -> None:
    rows = 1_000_000 if store_kind == "sqlite" else int(os.environ.get("CHOKAQ_TEST_DECK_ROWS", "20000"))
    house.enqueue("email.send.v1", to="a@example.com")
    newest = fill_archive(lab, rows)
    stopped = fill_dlq(lab, rows // 10)
    page.goto(f"{house.serve()}/jobs?pillar=archive")
    expect(row(page, newest)).to_be_visible()
    took = [_turn(page) for _ in range(4)]
    page.get_by_label("Queue", exact=True).select_option("emails")
    expect(page).to_have_url(f"{house.url}/jobs?pillar=archive&queue=emails")
    expect(page.locator("tbody tr")).to_have_count(50)
    took.append(_turn(page))
    page.get_by_role("button", name="Ended").click()
    expect(page.locator("th[aria-sort=descending]", has_text="Ended")).to_be_visible()
    took.append(_turn(page))

    page.goto(f"{house.url}/jobs?pillar=dlq")
    expect(row(page, stopped)).to_be_visible()
    took.append(_turn(page))
    search = page.get_by_label("Search", exact=True)
    search.fill("nowhere to be found")
    began = time.monotonic()
    search.press("Enter")
    if rows // 10 > 10_000:
        expect(page.get_by_text("None of the 10,000 jobs looked at so far fits.")).to_be_visible()
        took.append(time.monotonic() - began)
        page.get_by_role("button", name="Look further").first.click()
        expect(page.get_by_text("looked at 10,000 jobs")).to_be_visible()
    search.fill(stopped)
    search.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    # The machine of the tests is busy: what would be seen is a scan, which takes many times as long.
    assert sorted(took)[len(took) // 2] < 3, took


def _turn(page: Page) -> float:
    last = page.locator("tbody tr").first
    before = last.get_by_role("link").inner_text()
    began = time.monotonic()
    page.get_by_role("button", name="Older").click()
    expect(page.locator("tbody tr").first.get_by_role("link")).not_to_have_text(before)
    return time.monotonic() - began
