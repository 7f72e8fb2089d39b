"""A Deck over several databases: one desk for each, told apart on every page."""

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from chokaq.config.load import Loaded
from chokaq.config.settings import DeckSettings, QueueSettings, Settings
from chokaq.deck.desk import Desk, open_desks
from chokaq.deck.live import State
from chokaq.deck.pages.frame import top
from chokaq.deck.site import build_site
from chokaq.deck.users import Role, User
from chokaq.operations.connect import find_store
from chokaq.operations.errors import UnknownJob
from chokaq.store.options import DatabaseSettings
from chokaq.store.records import NewJob
from tests.support.ids import new_id

from .conftest import HOST, PASSWORD, USERS, client

ANNA = User("anna", Role.OPERATOR)


@pytest.fixture
def settings(databases: dict[str, DatabaseSettings]) -> Settings:
    """`emails` lives in main, `reports` in archive."""
    return Settings(
        database=databases["main"],
        databases=databases,
        places={"emails": "main", "reports": "archive"},
        queues={"emails": QueueSettings(name="emails"), "reports": QueueSettings(name="reports", database="archive")},
    )


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Desk]:
    """The first desk, of main."""
    first = open_desks(Loaded(settings, {}), store=find_store)
    yield first
    for one in first.desks:
        await one.stop()


def put(options: DatabaseSettings, queue: str) -> str:
    """Enqueue a job behind The Deck's back."""
    session = find_store(options).session()
    try:
        [answer] = session.enqueue_jobs([NewJob(id=new_id(), queue=queue, type_key="a.b", payload='{"in": "there"}')])
        return answer.id
    finally:
        session.close()


async def test_each_database_has_its_own_addresses(desk: Desk, databases: dict[str, DatabaseSettings]) -> None:
    here, there = put(databases["main"], "emails"), put(databases["archive"], "reports")
    async with client(desk) as browser:
        for path, job, queue in (("", here, "emails"), ("/db/archive", there, "reports")):
            listed = (await browser.get(f"{path}/api/jobs")).json()["jobs"]
            assert [found["id"] for found in listed] == [job]
            assert [row["queue"]["name"] for row in (await browser.get(f"{path}/api/queues")).json()] == [queue]
        assert (await browser.get("/db/nowhere/api/jobs")).status_code == 404
        described = (await browser.get("/db/archive/api/openapi.json")).json()
        assert described["servers"] == [{"url": "/db/archive/api"}]


async def test_an_action_is_done_where_it_was_asked_for(desk: Desk, databases: dict[str, DatabaseSettings]) -> None:
    job = put(databases["archive"], "reports")
    async with client(desk) as browser:
        body = {"ids": [job], "reason": "tidy"}
        assert (await browser.post("/api/jobs/cancel", json=body)).json()[0]["result"] == "unknown"
        assert (await browser.post("/db/archive/api/jobs/cancel", json=body)).json()[0]["result"] == "cancelled"


async def test_a_job_of_another_database_is_pointed_at(desk: Desk, databases: dict[str, DatabaseSettings]) -> None:
    job = put(databases["archive"], "reports")
    with pytest.raises(UnknownJob, match="The database archive holds it"):
        await desk.reads.job(job)
    with pytest.raises(UnknownJob) as caught:
        await desk.reads.job(new_id())
    assert "holds it" not in str(caught.value)


def words(tree: object) -> str:
    """All texts and links of a tree."""
    return repr(tree)


async def test_every_page_says_which_one_it_shows_and_leads_to_the_others(desk: Desk) -> None:
    archive = desk.desks[1]
    shown = words(top(desk, ANNA, "queues", State(), "/queues"))
    assert "What you see is the database main alone" in shown
    assert "'href': '/db/archive/queues'" in shown
    back = words(top(archive, ANNA, "jobs", State(), "/jobs"))
    assert "What you see is the database archive alone" in back
    assert "'href': '/jobs'" in back
    assert "1 of 2" not in shown + back


async def test_one_that_is_chosen_is_shown_alone_and_says_so(settings: Settings) -> None:
    from msgspec.structs import replace

    alone = replace(settings, deck=DeckSettings(database="archive"))
    desk = open_desks(Loaded(alone, {}), store=find_store)
    assert [one.name for one in desk.desks] == ["archive"]
    assert desk.base == ""
    shown = words(top(desk, ANNA, "jobs", State()))
    assert "1 of 2" in shown
    assert "Not shown by this Deck: main" in shown
    await desk.stop()


async def test_of_one_database_nothing_is_said(desks: object, store_options: DatabaseSettings) -> None:
    desk = open_desks(Loaded(Settings(database=store_options), {}), base="/chokaq", store=find_store)
    assert (desk.base, desk.root, len(desk.desks)) == ("/chokaq", "/chokaq", 1)
    assert "databases" not in words(top(desk, ANNA, "jobs", State()))
    await desk.stop()


async def test_below_a_path_and_behind_a_sign_in(settings: Settings) -> None:
    from msgspec.structs import replace

    guarded = replace(settings, deck=DeckSettings(users=USERS, secret="s" * 32))
    desk = open_desks(Loaded(guarded, {}), base="/chokaq", store=find_store)
    archive = desk.desks[1]
    assert (archive.base, archive.root) == ("/chokaq/db/archive", "/chokaq")
    outer = Starlette()
    outer.mount("/chokaq", build_site(desk, pages=False))
    transport = httpx.ASGITransport(outer, client=("127.0.0.1", 40_000))
    async with httpx.AsyncClient(transport=transport, base_url=f"{HOST}/chokaq") as browser:
        refused = await browser.get("/db/archive/api/jobs")
        assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
        sent = await browser.get("/db/archive/jobs", headers={"accept": "text/html"})
        assert sent.headers["location"] == "/chokaq/login?next=%2Fdb%2Farchive%2Fjobs"
        signed = await browser.post(
            "/login",
            data={"name": "vera", "password": PASSWORD, "next": "/db/archive/jobs"},
            headers={"origin": HOST},
        )
        assert signed.headers["location"] == "/chokaq/db/archive/jobs"
        # Signed in for all of them.
        assert (await browser.get("/db/archive/api/jobs")).status_code == 200
        assert (await browser.get("/api/jobs")).status_code == 200
    for one in desk.desks:
        await one.stop()
