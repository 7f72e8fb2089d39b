"""A sign-out holds for every process of The Deck: the database tells, asked with what changed, never more than once a second."""

import asyncio

import httpx
import pytest

from chokaq.deck.access import COOKIE
from chokaq.deck.desk import Desk
from chokaq.deck.lanes import Lanes
from chokaq.deck.live import INTERVAL, Live
from chokaq.store.errors import StoreUnavailable
from chokaq.store.looking import EVER
from chokaq.store.protocol import Session, Store
from tests.deck.conftest import HOST, PASSWORD, USERS, OpenDesk, client
from tests.deck.test_live import Clock, Flaky, settle
from tests.support.lab import Lab

OWN = {"origin": HOST}
SECRET = "s" * 32


class Fleet:
    """Two Deck processes behind one address, whose seconds the test lets pass."""

    def __init__(self, desks: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.here, self.there = (desks(users=USERS, secret=SECRET) for _ in range(2))
        for desk in (self.here, self.there):
            monkeypatch.setattr(desk.live, "_clock", self.clock)

    async def sign_in(self, browser: httpx.AsyncClient) -> str:
        """The cookie that anna gets."""
        answer = await browser.post("/login", data={"name": "anna", "password": PASSWORD}, headers=OWN)
        assert answer.status_code == 303
        return browser.cookies[COOKIE]


async def read(desk: Desk, cookie: str) -> int:
    """The answer to somebody with that cookie."""
    async with client(desk, cookies={COOKIE: cookie}) as browser:
        return (await browser.get("/api/workers")).status_code


async def sign_out(desk: Desk, cookie: str) -> None:
    """As the button does."""
    async with client(desk, cookies={COOKIE: cookie}) as browser:
        assert (await browser.post("/logout", headers=OWN)).status_code == 303


async def test_another_process_refuses_the_session_a_second_later(
    desks: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(desks, monkeypatch)
    async with client(fleet.here) as browser, client(fleet.there) as other:
        cookie, stays = await fleet.sign_in(browser), await fleet.sign_in(other)
    assert await read(fleet.there, cookie) == 200

    await sign_out(fleet.here, cookie)
    fleet.clock.now += INTERVAL

    assert await read(fleet.here, cookie) == 401
    assert await read(fleet.there, cookie) == 401
    assert await read(fleet.there, stays) == 200
    assert await read(fleet.here, stays) == 200


async def test_a_process_that_starts_later_knows_of_it_at_its_first_request(
    desks: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(desks, monkeypatch)
    async with client(fleet.here) as browser:
        cookie = await fleet.sign_in(browser)
    await sign_out(fleet.here, cookie)

    assert await read(desks(users=USERS, secret=SECRET), cookie) == 401


async def test_who_heard_of_it_goes_by_that_whatever_becomes_of_the_row(
    desks: OpenDesk, monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    """It may be purged a moment before another host's clock says that the cookie is over."""
    fleet = Fleet(desks, monkeypatch)
    async with client(fleet.here) as browser:
        cookie = await fleet.sign_in(browser)
    await sign_out(fleet.here, cookie)
    assert await read(fleet.there, cookie) == 401
    lab.execute("DELETE FROM {SignOuts}")
    fleet.clock.now += 3_600

    assert await read(fleet.there, cookie) == 401


async def test_requests_cost_one_question_a_second_and_none_without_a_session(
    desks: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(desks, monkeypatch)
    async with client(fleet.here) as browser:
        await browser.get("/login")
        assert (await browser.get("/api/workers")).status_code == 401
        assert fleet.here.live.looks == 0
        await fleet.sign_in(browser)
        for second in range(1, 4):
            await asyncio.gather(*(browser.get("/api/workers") for _ in range(8)))
            assert fleet.here.live.looks == second
            fleet.clock.now += INTERVAL


async def test_where_nobody_signs_in_nobody_is_asked_about(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async with client(desk) as browser:
        assert (await browser.get("/api/workers")).status_code == 200
    assert desk.live.looks == 0
    await desk.live.look()
    assert desk.live._signed_out is None


async def test_while_the_database_is_away_what_was_heard_holds_and_nobody_waits(store: Store) -> None:
    flaky, clock = Flaky(store), Clock()
    lanes = Lanes(flaky, 1)  # type: ignore[arg-type]
    heard: list[dict[str, int]] = []
    live = Live(lanes, signed_out=lambda told: heard.append(dict(told)), clock=clock)
    await live.fresh()
    flaky.away = True
    for _ in range(5):
        clock.now += INTERVAL
        await live.fresh()
        await live.fresh()
    assert live.state.stale_since is not None
    await settle()
    flaky.away = False
    clock.now += INTERVAL
    await live.fresh()
    await live._asking  # type: ignore[misc]
    await live.stop()
    lanes.close()

    assert len(heard) == 2
    assert flaky.since[0] == EVER
    assert 60 < flaky.since[-1] <= 70, "what happened meanwhile, and a minute more"  # type: ignore[operator]
    assert live.state.stale_since is None


async def test_open_pages_keep_it_fresh_so_that_requests_ask_nothing(desk: Desk) -> None:
    """The loop asks; a request that comes in between goes by what it heard."""
    clock = Clock()
    desk.live._clock = clock
    told = asyncio.Event()
    desk.live.subscribe("overview", told.set)
    desk.live.start()
    await asyncio.wait_for(told.wait(), 60)
    looks = desk.live.looks
    clock.now += 1.5 * INTERVAL
    await desk.live.fresh()
    assert desk.live.looks == looks
    clock.now += INTERVAL
    await desk.live.fresh()
    assert desk.live.looks == looks + 1, "the loop is late"


async def test_a_sign_out_without_a_database_is_told_once_it_is_back(
    desks: OpenDesk, monkeypatch: pytest.MonkeyPatch, lab: Lab, session: Session
) -> None:
    fleet = Fleet(desks, monkeypatch)
    async with client(fleet.here) as browser:
        cookie = await fleet.sign_in(browser)
    kind, away = type(session), True
    tell = kind.sign_out

    def flaky(store: Session, *args: object) -> None:
        if away:
            raise StoreUnavailable("the server does not answer")
        tell(store, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "sign_out", flaky)
    await sign_out(fleet.here, cookie)
    assert await read(fleet.here, cookie) == 401, "here it holds at once"
    assert lab.count("SignOuts") == 0

    away = False
    fleet.clock.now += INTERVAL
    await fleet.here.live.look()
    for one in list(fleet.here.live._subscriptions.values()):
        assert one._task is not None
        await one._task

    assert lab.count("SignOuts") == 1
    assert not fleet.here.live._subscriptions, "nothing is left to tell"
    fleet.clock.now += INTERVAL
    assert await read(fleet.there, cookie) == 401
