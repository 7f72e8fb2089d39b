"""Every page at every width, in both themes; and the pages that only show. Makes the pictures of the docs when asked.

Pictures: `CHOKAQ_TEST_DECK_SCREENSHOTS=docs/deck pytest tests/deck/browser/test_pages.py`.
"""

import csv
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chokaq.lifecycle.circuit import Forced
from chokaq.lifecycle.states import JobStatus
from tests.support.jobs import new_job
from tests.support.lab import Lab
from tests.support.stopped import stopped

from .conftest import OpenPage
from .house import House, heading, row, sign_in
from .scene import Scene, set_scene

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]
VARIABLE = "CHOKAQ_TEST_DECK_SCREENSHOTS"
NOT_SHOWN = {"jobs-hot", "settings"}
"""Pages that the docs show no picture of."""


def test_every_page_fits_every_screen_in_both_themes(house: House, pages: OpenPage, lab: Lab) -> None:
    scene = set_scene(house, lab)
    house.serve(users=True)
    for width, height, theme in ((1280, 800, "light"), (1920, 1080, "dark"), (390, 844, "light")):
        page = pages(width=width, height=height, theme=theme)
        sign_in(page, house, "anna")
        heading(page, "Overview")
        for name, path, shown in _tour(scene):
            page.goto(house.url + path)
            expect(page.get_by_text(shown).first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than {width}"
            assert page.evaluate("document.documentElement.dataset.theme") == theme
            if (width == 1280 and name not in NOT_SHOWN) or (name, width) in {("overview", 1920), ("jobs-dlq", 390)}:
                _picture(page, f"{name}-{width}-{theme}")


def _tour(scene: Scene) -> list[tuple[str, str, str]]:
    return [
        ("overview", "/", "Running against capacity"),
        ("queues", "/queues", "reports"),
        ("priorities", "/queues?queue=emails", "emails by priority"),
        ("jobs-hot", "/jobs?pillar=hot", scene.running),
        ("jobs-dlq", "/jobs?pillar=dlq&sort=ended", "SMTPRecipientsRefused"),
        ("job", f"/jobs/{scene.failed}", "What resurrection would risk"),
        ("workers", "/workers", "worker-1"),
        ("circuits", "/circuits", "webhook.deliver.v3"),
        ("circuit-history", "/circuits?type=webhook.deliver.v3", "the provider asks for an hour"),
        ("audit", "/audit", "the provider is down"),
        ("settings", "/settings", "max_workers"),
    ]


def _picture(page: Page, name: str) -> None:
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return
    # Charts are drawn once their script has come.
    for chart in page.locator(".nicegui-echart").all():
        expect(chart.locator("canvas")).to_be_attached()
    page.screenshot(path=Path(folder) / f"{name}.png")


def test_below_a_path_of_another_application_everything_stays_below_it(house: House, page: Page) -> None:
    [job_id] = house.enqueue("email.send.v1", to="a@example.com")
    page.goto(f"{house.mount()}/")
    heading(page, "Overview")
    page.locator("a.tile", has_text="Pending").click()
    row(page, job_id).get_by_role("link").click()
    expect(page).to_have_url(f"{house.url}/jobs/{job_id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").locator(".cm-content").fill('{"to": 5}')
    page.get_by_role("dialog").get_by_role("button", name="Check").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("SendEmail")
    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page).to_have_url(f"{house.url}/queues")


def test_times_are_the_viewers_with_utc_on_hover_and_the_theme_is_remembered(
    house: House, pages: OpenPage, lab: Lab
) -> None:
    job_id = stopped(house.session, JobStatus.FAILED, new_job(queue="emails"))
    lab.set_time(job_id, "FailedAtUtc", 1_767_225_600_000, "JobsDLQ")
    page = pages(zone="America/New_York")
    page.goto(f"{house.serve()}/jobs/{job_id}")
    stopped_at = page.locator("dt", has_text="Stopped").locator("..").locator("time")
    expect(stopped_at).to_have_text("2025-12-31 19:00:00")
    expect(stopped_at).to_have_attribute("title", "2025-12-31 19:00:00 America/New_York\n2026-01-01 00:00:00.000 UTC")
    for expected in ("light", "dark"):
        page.get_by_role("button", name="Theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", expected)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_audit_log_is_filtered_and_taken_away_as_a_file(house: House, page: Page) -> None:
    house.enqueue("email.send.v1", to="a@example.com")
    house.session.force_circuit("email.send.v1", Forced.OPEN, "=anna", "the provider is down")
    job_id = stopped(house.session, JobStatus.CANCELLED, new_job(queue="emails"))
    page.goto(f"{house.serve()}/audit")
    expect(page.locator("tbody tr").filter(has=page.get_by_role("cell"))).not_to_have_count(0)
    page.get_by_label("Who").fill("=anna")
    page.keyboard.press("Enter")
    expect(row(page, job_id)).to_have_count(0)
    expect(row(page, "the provider is down")).to_be_visible()
    with page.expect_download() as taken:
        page.get_by_role("button", name="Export").click()
    [line] = csv.DictReader(Path(taken.value.path()).read_text().splitlines())
    assert (line["actor"], line["target"], line["reason"]) == ("'=anna", "email.send.v1", "the provider is down")


def test_the_circuits_of_a_type_are_forced_open_and_cleared(house: House, page: Page) -> None:
    page.goto(f"{house.serve()}/circuits")
    expect(page.get_by_text("All circuits are closed.")).to_be_visible()
    page.get_by_role("button", name="Force a type").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Job type").fill("email.send.v1")
    dialog.get_by_label("Reason").fill("the provider is down")
    dialog.get_by_role("button", name="Order").click()
    expect(row(page, "email.send.v1")).to_contain_text("forced open")
    page.get_by_role("button", name="Clear the order").click()
    page.get_by_role("dialog").get_by_role("button", name="Clear the order").click()
    expect(page.get_by_text("All circuits are closed.")).to_be_visible()


def test_a_worker_shows_what_it_runs_and_is_told_to_drain(house: House, page: Page) -> None:
    house.work()
    [job_id] = house.enqueue("report.build.v1", name="yearly")
    house.wait_for([job_id], JobStatus.PROCESSING)
    page.goto(f"{house.serve()}/workers")
    reports = row(page, "report.build.v1")
    expect(reports).to_contain_text("1 of 2")
    expect(reports).to_contain_text("live")
    emails = row(page, "emails")
    emails.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_text("Told. It ends once its replacement is up")).to_be_visible()
    expect(row(page, "draining")).to_have_count(0)
    page.get_by_role("link", name="Show those that ended").click()
    expect(row(page, "ended")).to_be_visible()


def test_the_settings_say_where_each_value_comes_from(house: House, page: Page) -> None:
    page.goto(f"{house.serve()}/settings")
    heading(page, "Settings")
    page.get_by_label("Search settings").fill("emails.max_workers")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("chokaq.yaml")
    page.get_by_label("Search settings").fill("no such setting")
    expect(page.get_by_text("No setting fits.")).to_be_visible()
