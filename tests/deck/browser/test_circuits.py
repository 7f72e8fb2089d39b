"""What the circuits of a job type did: from the table to its history, live, page by page, also when all is well again."""

import pytest
from playwright.sync_api import Page, expect

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.store.circuits import CircuitChange
from tests.support.holder import Holder
from tests.support.lab import Lab

from .house import House, heading, row

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

TYPE = "webhook.deliver.v3"
CLOSED, OPEN, HALF_OPEN = CircuitState
_CHART = """() => {
    const chart = getElement(Number(document.querySelector(".chart .nicegui-echart").id.slice(1))).chart;
    const [line] = chart.getOption().series;
    return JSON.stringify([line.data.map((point) => point[1]), line.markLine.data.map((mark) => mark.label.formatter)]);
}"""


def say(holder: Holder, state: CircuitState, generation: int, ago: int) -> None:
    """A worker reports; `ago`: milliseconds since the state was entered."""
    told = CircuitChange(
        type_key=TYPE,
        state=state,
        failures=5,
        generation=generation,
        changed_ms=ago,
        last_error="shop.http.GatewayTimeout",
    )
    holder.session.report_circuits(holder.worker, [told])


def test_an_outage_is_followed_from_the_open_circuit_through_its_history(house: House, page: Page) -> None:
    holder = Holder(house.session, "webhooks")
    for generation, (state, ago) in enumerate([(OPEN, 7_200_000), (HALF_OPEN, 7_100_000), (OPEN, 7_090_000)], 1):
        say(holder, state, generation, ago)
    page.goto(f"{house.serve()}/circuits")
    heading(page, "Circuits")
    row(page, TYPE).get_by_role("link", name="history").click()

    history = page.get_by_role("region", name=f"History of {TYPE}").locator("tbody tr")
    expect(history).to_have_count(1)
    expect(history.first).to_contain_text("opened")
    expect(history.first).to_contain_text("host-1")
    expect(history.first).to_contain_text("GatewayTimeout")
    expect(page.get_by_role("region", name="The last 24 hours").locator("canvas")).to_be_attached()
    expect(page.locator(".chart .nicegui-echart")).to_have_count(1)

    page.get_by_role("button", name="Every try").click()
    expect(history).to_have_count(3)
    expect(page).to_have_url(f"{house.url}/circuits?type={TYPE}&tries=1")
    expect(history.nth(1)).to_contain_text("tries a job")

    # It comes while somebody looks.
    house.session.force_circuit(TYPE, Forced.CLOSED, "anna", "the provider is back")
    expect(history).to_have_count(4)
    expect(history.first).to_contain_text("forced closed")
    expect(history.first).to_contain_text("the provider is back")
    say(holder, CLOSED, 4, 0)
    expect(history).to_have_count(5)
    expect(history.first).to_contain_text("closed")
    page.wait_for_function(f"({_CHART})() === '[[0,1,0,0],[\"forced closed\"]]'")

    page.get_by_role("link", name="Hide").click()
    expect(page.get_by_role("region", name=f"History of {TYPE}")).to_have_count(0)
    expect(row(page, TYPE)).to_be_visible()


def test_the_history_of_a_type_whose_circuits_are_closed_again_is_found_by_its_key_and_goes_on_page_by_page(
    house: House, page: Page, lab: Lab
) -> None:
    for number in range(30):
        house.session.force_circuit(TYPE, Forced.OPEN, f"anna {2 * number}")
        house.session.force_circuit(TYPE, Forced.NO, f"anna {2 * number + 1}")
    lab.age_all("CircuitEvents", "AtUtc", 3 * 86_400_000)
    page.goto(f"{house.serve()}/circuits")
    expect(page.get_by_text("All circuits are closed.")).to_be_visible()
    page.get_by_label("History of a job type").fill(TYPE.upper())
    page.keyboard.press("Enter")

    history = page.get_by_role("region", name=f"History of {TYPE}").locator("tbody tr")
    expect(history).to_have_count(50)
    expect(history.first).to_contain_text("anna 59")
    expect(history.first).to_contain_text("order cleared")
    page.get_by_role("button", name="Older").click()
    expect(history).to_have_count(10)
    expect(history.last).to_contain_text("anna 0")
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    page.reload()
    expect(history).to_have_count(10)

    page.get_by_label("History of a job type").fill("no.such.type")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Nothing happened to it within the last 7 days.")).to_be_visible()


def test_a_viewer_reads_histories_and_a_key_that_is_none_is_told_in_words(house: House, page: Page) -> None:
    page.goto(f"{house.serve()}/circuits?type=%C3%BC")
    expect(page.get_by_role("alert")).to_contain_text("is not a type key")
