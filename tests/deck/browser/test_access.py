"""Who may do what: the sign-in, a viewer's page, and two operators who act at once."""

import pytest
from playwright.sync_api import Page, expect

from chokaq.lifecycle.states import JobStatus
from tests.support.jobs import new_job
from tests.support.stopped import stopped

from .conftest import OpenPage
from .house import House, heading, menu, row, sign_in

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


def test_a_wrong_password_is_refused_in_words_and_a_link_leads_to_where_it_pointed(house: House, page: Page) -> None:
    house.serve(users=True)
    page.goto(f"{house.url}/queues")
    page.get_by_label("Name").fill("vera")
    page.get_by_label("Password").fill("guessed")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password").fill("correct horse battery staple")
    page.get_by_role("button", name="Sign in").click()
    heading(page, "Queues")
    second = page.context.new_page()
    second.goto(f"{house.url}/workers")
    heading(second, "Workers")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    expect(second.get_by_label("Password")).to_be_visible()


def test_signing_out_of_one_process_closes_the_pages_of_every_other(house: House, page: Page) -> None:
    """A cookie belongs to a host, whatever the port: one sign-in serves both."""
    first = house.serve(users=True)
    sign_in(page, house, "vera")
    heading(page, "Overview")
    second = house.serve(users=True, name="second")
    others = []
    for name, title in (("circuits", "Circuits"), ("settings", "Settings")):
        other = page.context.new_page()
        other.goto(f"{second}/{name}")
        heading(other, title)
        others.append(other)
    kept = page.context.cookies()

    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_label("Password")).to_be_visible()
    for other in others:
        expect(other.get_by_label("Password")).to_be_visible()
    page.context.add_cookies(kept)
    for address in (first, second):
        page.goto(f"{address}/queues")
        expect(page.get_by_label("Password")).to_be_visible()


def test_a_viewer_sees_everything_and_is_refused_every_change_also_behind_the_page(house: House, page: Page) -> None:
    [job_id] = house.enqueue("email.send.v1", to="a@example.com")
    house.serve(users=True)
    sign_in(page, house, "vera")
    expect(page.get_by_text("vera")).to_be_visible()
    menu(page, "Queues").click()
    expect(row(page, "emails")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)

    # Somebody who sends what the button would have sent gets as far as the operation, which refuses.
    _send(page, "pause", "emails")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog.get_by_role("alert")).to_contain_text("may look but not change anything")
    page.keyboard.press("Escape")
    assert not house.session.list_queues()[0].live.paused
    menu(page, "Audit").click()
    expect(page.get_by_text("Nobody has changed anything yet.")).to_be_visible()
    expect(page.get_by_role("heading", name="Refused")).to_have_count(0)

    page.goto(f"{house.url}/jobs?pillar=hot")
    expect(page.get_by_text("You look as a viewer")).to_be_visible()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    page.get_by_role("link", name=job_id).click()
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("a@example.com")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_of_two_operators_the_second_sees_at_once_what_the_first_did_and_is_told_that_it_is_too_late(
    house: House, pages: OpenPage
) -> None:
    job_id = stopped(house.session, JobStatus.FAILED, new_job(queue="emails"))
    house.serve(users=True)
    anna, ben = pages(), pages()
    for page, name in ((anna, "anna"), (ben, "ben")):
        sign_in(page, house, name)
        heading(page, "Overview")
        page.goto(f"{house.url}/jobs/{job_id}")
    ben.get_by_role("button", name="Edit").click()
    ben.get_by_role("dialog").locator(".cm-content").fill('{"to": "b@example.com"}')

    anna.get_by_role("button", name="Drop").click()
    dialog = anna.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("double")
    dialog.get_by_label("to confirm").fill("drop 1")
    dialog.get_by_role("button", name="Drop").click()
    expect(anna.locator(".head .badge").first).to_have_text("Dropped")

    expect(ben.locator(".head .badge").first).to_have_text("Dropped")
    expect(ben.get_by_label("What operators did")).to_contain_text("anna")
    ben.get_by_role("dialog").get_by_role("button", name="Save and resurrect").click()
    expect(ben.get_by_role("dialog").get_by_role("alert")).to_contain_text("it has moved on")
    assert house.session.get_statuses([job_id]) == [JobStatus.DROPPED]


def test_an_operator_sees_who_was_refused_what(house: House, page: Page) -> None:
    house.serve(users=True)
    sign_in(page, house, "vera", "guessed")
    expect(page.get_by_role("alert")).to_be_visible()
    sign_in(page, house, "anna")
    heading(page, "Overview")
    menu(page, "Audit").click()
    expect(row(page, "vera")).to_contain_text("sign in")


def _send(page: Page, act: str, value: str) -> None:
    """Tell the server what a button would."""
    page.evaluate(
        """([act, value]) => {
            const known = Object.entries(mounted_app.elements);
            const [id, told] = known.map(([id, element]) => [id, (element.events || []).find((event) => event.type === "act")])
                .find(([id, told]) => told && document.querySelector("#main").contains(document.getElementById("c" + id)));
            const args = [JSON.stringify([act, value])];
            window.socket.emit("event", { id: Number(id), client_id: window.clientId, listener_id: told.listener_id, args });
        }""",
        [act, value],
    )
