"""Jobs have stopped: one is mended and resurrected, the rest follow; a poison job is dropped; a running one is cancelled."""

import re

import pytest
from playwright.sync_api import Page, expect

from chokaq.lifecycle.states import FailureReason, JobStatus
from tests.support.jobs import new_job
from tests.support.lab import Lab
from tests.support.stopped import stopped

from .house import House, row

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


def test_the_top_error_is_opened_one_payload_mended_and_seen_to_succeed_then_the_rest_is_resurrected(
    house: House, page: Page
) -> None:
    house.work()
    ids = house.enqueue("email.send.v1", 12, to="nobody")
    house.wait_for(ids, JobStatus.FAILED)

    page.goto(house.serve())
    top = page.get_by_label("Top errors").locator("tbody tr")
    expect(top).to_contain_text("12")
    top.get_by_role("link", name="FatalError").click()
    expect(row(page, "'nobody' is no address")).to_have_count(12)
    listed = page.url
    row(page, ids[-1]).get_by_role("link").click()

    expect(page.get_by_label("Failed attempts", exact=True)).to_contain_text("raise FatalError")
    page.get_by_role("button", name="Edit").click()
    editor = page.get_by_role("dialog").locator(".cm-content")
    editor.fill('{"to": 5}')
    page.get_by_role("button", name="Save and resurrect").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("str")
    editor.fill('{"to": "nobody@example.com"')
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("not JSON")
    expect(page.get_by_role("button", name="Save and resurrect")).to_be_disabled()
    editor.fill('{"to": "nobody@example.com"}')
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_count(0)
    page.get_by_role("dialog").get_by_label("Reason").fill("the customer has written")
    page.get_by_role("button", name="Save and resurrect").click()
    expect(page.locator(".head .badge").first).to_have_text("Succeeded")
    expect(page.get_by_label("What operators did")).to_contain_text("the customer has written")

    house.mended.touch()
    page.goto(listed)
    expect(row(page, "'nobody' is no address")).to_have_count(11)
    page.get_by_role("button", name="All that fit").click()
    page.get_by_role("dialog").get_by_role("button", name="Preview").click()
    dialog = page.get_by_role("dialog").filter(has_text="Resurrect 11 jobs?")
    expect(dialog).to_contain_text("11 jobs fit now")
    dialog.get_by_label("to confirm").fill("resurrect 11")
    dialog.get_by_role("button", name="Resurrect").click()
    expect(page.get_by_text("11 resurrected.")).to_be_visible()
    expect(page.get_by_text("No job fits this filter.")).to_be_visible()
    house.wait_for(ids, JobStatus.SUCCEEDED)


def test_a_poison_job_is_dropped_with_a_reason_and_stays_readable(house: House, page: Page, lab: Lab) -> None:
    job_id = stopped(house.session, JobStatus.ZOMBIE, new_job(queue="emails"))
    lab.put(job_id, "JobsDLQ", FailureReason=int(FailureReason.POISON), CrashCount=3)
    page.goto(f"{house.serve()}/jobs/{job_id}")
    expect(page.get_by_label("What resurrection would risk")).to_contain_text("Poison")
    page.get_by_role("button", name="Drop").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill("Drop 1")
    dialog.get_by_role("button", name="Drop").click()
    expect(dialog.get_by_label("Reason")).to_have_js_property("validity.valid", False)
    dialog.get_by_label("Reason").fill("it takes the process down")
    dialog.get_by_role("button", name="Drop").click()
    expect(page.locator(".head .badge").first).to_have_text("Dropped")
    expect(page.get_by_role("button", name="Resurrect")).to_have_count(0)
    expect(page.get_by_label("What operators did")).to_contain_text("it takes the process down")
    expect(page.get_by_label("Payload", exact=True)).to_contain_text('"n": 1')


def test_a_running_job_shows_how_far_it_is_and_ends_when_it_is_cancelled(house: House, page: Page) -> None:
    [job_id] = house.enqueue("report.build.v1", name="yearly")
    page.goto(f"{house.serve()}/jobs/{job_id}")
    expect(page.locator(".head .badge").first).to_have_text("Pending")
    house.work()
    expect(page.locator(".head .badge").first).to_have_text("Processing")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "40")
    expect(page.get_by_text("half of the pages")).to_be_visible()
    expect(page.get_by_label("The job")).to_contain_text(re.compile("heartbeat"))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("not needed any more")
    page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator(".head .badge").first).to_have_text("Cancelled")
    house.wait_for([job_id], JobStatus.CANCELLED)


def test_selected_jobs_are_acted_on_together_and_the_list_is_held_while_somebody_selects(
    house: House, page: Page
) -> None:
    first, second, third = house.enqueue("email.send.v1", 3, to="a@example.com")
    page.goto(f"{house.serve()}/jobs?pillar=hot")
    page.get_by_label(f"Select {first}").check()
    page.get_by_label(f"Select {third}").check()
    expect(page.get_by_text("2 jobs selected")).to_be_visible()
    [later] = house.enqueue("email.send.v1", to="b@example.com")
    expect(page.get_by_text("The list has moved on")).to_be_visible()
    expect(row(page, later)).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("2 cancelled.")).to_be_visible()
    expect(row(page, first)).to_have_count(0)
    expect(row(page, later)).to_have_count(1)
    expect(row(page, second)).to_have_count(1)
    assert house.session.get_statuses([first, second, third]) == [
        JobStatus.CANCELLED,
        JobStatus.PENDING,
        JobStatus.CANCELLED,
    ]


def test_25_jobs_and_more_are_touched_only_after_their_number_was_typed(house: House, page: Page) -> None:
    ids = house.enqueue("email.send.v1", 25, to="a@example.com")
    page.goto(f"{house.serve()}/jobs?pillar=hot")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Cancel", exact=True)).to_be_disabled()
    dialog.get_by_label("to confirm").fill("cancel 25")
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("Nothing waits and nothing runs.")).to_be_visible()
    house.wait_for(ids, JobStatus.CANCELLED)
