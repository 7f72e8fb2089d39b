"""A queue lags: the operator sees it, finds why, and pauses it."""

import pytest
from playwright.sync_api import Page, expect

from chokaq.lifecycle.states import JobStatus
from chokaq.store.records import NewJob
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.lab import Lab

from .house import House, heading, menu, row

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


def test_from_the_lag_on_the_overview_to_the_job_that_holds_the_queue_up_and_a_pause(
    house: House, page: Page, lab: Lab
) -> None:
    [stuck, *waiting] = house.enqueue("email.send.v1", 31, to="a@example.com")
    Holder(house.session, "emails").take_one()
    for job_id in waiting:
        lab.age(job_id, "DueAtUtc", 60_000)

    page.goto(house.serve())
    tile = page.locator("a.tile", has_text="Lag")
    expect(tile).to_contain_text("very high")
    expect(page.get_by_label("Health")).to_contain_text("emails")
    tile.click()

    heading(page, "Queues")
    emails = row(page, "emails")
    expect(emails.get_by_title("lag: critical")).to_be_visible()
    expect(emails.locator("[data-label=Pending]")).to_have_text("30")
    emails.locator("[data-label=Running] a").click()
    expect(row(page, "email.send.v1")).to_have_count(1)
    expect(row(page, stuck)).to_contain_text("running for")

    menu(page, "Queues").click()
    page.get_by_role("button", name="Pause emails").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("the mail server is slow")
    dialog.get_by_role("button", name="Pause").click()
    expect(row(page, "emails")).to_contain_text("paused")
    assert next(queue for queue in house.session.list_queues() if queue.name == "emails").live.paused

    menu(page, "Audit").click()
    expect(row(page, "emails")).to_contain_text("the mail server is slow")


def test_a_priority_that_starves_is_seen_while_the_queue_works(house: House, page: Page, lab: Lab) -> None:
    session = house.session
    low = NewJob(id=new_id(), queue="emails", type_key="email.send.v1", payload="{}", priority=1)
    high = [NewJob(id=new_id(), queue="emails", type_key="email.send.v1", payload="{}", priority=90) for _ in range(4)]
    session.enqueue_jobs([low, *high])
    lab.age(low.id, "DueAtUtc", 125_000)
    page.goto(f"{house.serve()}/queues")
    page.get_by_role("link", name="Lag of emails by priority").click()

    shown = page.get_by_role("region", name="emails by priority").locator("tbody tr")
    expect(shown).to_have_count(2)
    expect(shown.first.locator("[data-label=Priority]")).to_have_text("90")
    expect(shown.first.locator("[data-label=Waiting]")).to_have_text("4")
    expect(shown.last.locator("[data-label=Waiting]")).to_have_text("1")
    expect(shown.last.get_by_title("lag: critical")).to_contain_text("2 min")

    Holder(session, "emails").take(4)
    expect(shown).to_have_count(1)
    expect(shown.locator("[data-label=Priority]")).to_have_text("1")
    page.get_by_role("link", name="Hide").click()
    expect(page.get_by_role("region", name="emails by priority")).to_have_count(0)
    expect(row(page, "emails")).to_be_visible()


def test_limits_are_set_and_a_queue_is_taken_out_of_service_only_when_its_name_was_typed(
    house: House, page: Page
) -> None:
    house.enqueue("report.build.v1", name="yearly")
    page.goto(f"{house.serve()}/queues")
    page.get_by_role("button", name="Limits reports").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Fleet cap").fill("3")
    dialog.get_by_label("Zombie timeout").fill("0")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_label("Zombie timeout")).to_have_js_property("validity.valid", False)
    dialog.get_by_label("Zombie timeout").fill("90")
    dialog.get_by_role("button", name="Set").click()
    expect(row(page, "reports").locator("[data-label=Limits]")).to_contain_text("fleet 3")
    expect(row(page, "reports").locator("[data-label=Limits]")).to_contain_text("zombie 1 min 30 s")

    page.get_by_role("button", name="Deactivate reports").click()
    out = page.get_by_role("dialog").get_by_role("button", name="Deactivate")
    expect(out).to_be_disabled()
    page.get_by_label("to confirm").fill("deactivate emails")
    expect(out).to_be_disabled()
    page.get_by_label("to confirm").fill("deactivate reports")
    out.click()
    expect(row(page, "reports")).to_contain_text("deactivated")
    page.get_by_role("button", name="Activate reports").click()
    expect(row(page, "reports")).not_to_contain_text("deactivated")
    assert set(house.session.get_statuses([job.id for job in _hot(house)])) == {JobStatus.PENDING}


def _hot(house: House):  # type: ignore[no-untyped-def]
    from chokaq.store.records import JobFilter

    return house.session.list_jobs(JobFilter(), 10).jobs
