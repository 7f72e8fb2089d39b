"""Who is let in, who is not, and that every refusal is seen."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from chokaq.config.settings import DeckSettings
from chokaq.deck.access import COOKIE, Access, Refused, Role
from chokaq.deck.desk import Desk
from chokaq.deck.gate import Gate
from chokaq.deck.site import build_site
from chokaq.deck.throttle import FIRST_WAIT, FREE, LONGEST_WAIT, Throttle
from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.protocol import Session
from tests.deck.conftest import HOST, PASSWORD, TOKEN, USERS, OpenDesk, client
from tests.support.holder import Holder
from tests.support.jobs import QUEUE, new_job
from tests.support.lab import Lab

OWN = {"origin": HOST}
PAUSE = {"queue": QUEUE, "reason": "slow"}


@asynccontextmanager
async def signed_in(desk: Desk, name: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has signed in."""
    async with client(desk) as browser:
        answer = await browser.post("/login", data={"name": name, "password": PASSWORD}, headers=OWN)
        assert answer.status_code == 303
        yield browser


async def test_a_browser_is_sent_to_the_sign_in_and_back_to_its_view(desks: OpenDesk) -> None:
    desk = desks(users=USERS)
    async with client(desk) as browser:
        sent = await browser.get("/jobs?pillar=dlq", headers={"accept": "text/html"})
        form = await browser.get(sent.headers["location"])
        back = await browser.post(
            "/login", data={"name": "anna", "password": PASSWORD, "next": "/jobs?pillar=dlq"}, headers=OWN
        )

    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fjobs%3Fpillar%3Ddlq")
    assert 'value="/jobs?pillar=dlq"' in form.text
    assert "default-src 'none'" in form.headers["content-security-policy"]
    assert (back.status_code, back.headers["location"]) == (303, "/jobs?pillar=dlq")
    cookie = back.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/", "max-age=43200"))


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", None])
async def test_nobody_is_sent_to_another_site_after_signing_in(desks: OpenDesk, target: str | None) -> None:
    async with client(desks(users=USERS)) as browser:
        fields = {"name": "anna", "password": PASSWORD} | ({"next": target} if target else {})
        answer = await browser.post("/login", data=fields, headers=OWN)

    assert answer.headers["location"] == "/"


async def test_a_link_from_a_chat_is_opened_once_more_as_our_own(desks: OpenDesk) -> None:
    """A strict cookie does not come along with a navigation from another site."""
    headers = {"accept": "text/html", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    async with client(desks(users=USERS)) as browser:
        answer = await browser.get("/jobs", headers=headers)

    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text


async def test_a_viewer_reads_and_is_refused_every_change_visibly(desks: OpenDesk, session: Session, lab: Lab) -> None:
    desk = desks(users=USERS)
    Holder(session)
    before = lab.rows("Queues")
    async with signed_in(desk, "vera") as browser:
        read = await browser.get("/api/queues")
        refused = await browser.post("/api/queues/pause", json=PAUSE, headers=OWN)
        secret = await browser.get("/api/refusals")

    assert read.status_code == 200
    assert (refused.status_code, refused.json()["title"]) == (403, "Not allowed")
    assert refused.headers["content-type"] == "application/problem+json"
    assert "vera may look but not change anything" in refused.json()["detail"]
    assert secret.status_code == 403
    assert lab.rows("Queues") == before
    [told] = await desk.reads.refusals()
    assert (told.who, told.what) == ("vera", "pause a queue")


async def test_an_operator_changes_and_the_audit_log_knows_who(desks: OpenDesk, session: Session) -> None:
    Holder(session)
    async with signed_in(desks(users=USERS), "anna") as browser:
        done = await browser.post("/api/queues/pause", json=PAUSE, headers=OWN)

    assert done.status_code == 200
    assert done.json()["live"]["paused"] is True
    [entry] = session.list_audit()
    assert (entry.actor, entry.reason) == ("anna", "slow")


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_the_bearer_of_the_token_may_what_its_role_may(desks: OpenDesk, session: Session, role: str) -> None:
    Holder(session)
    async with client(desks(token=TOKEN, token_role=role), headers={"authorization": f"Bearer {TOKEN}"}) as program:
        read = await program.get("/api/queues")
        done = await program.post("/api/queues/pause", json=PAUSE)

    assert read.status_code == 200
    assert done.status_code == (200 if role == "operator" else 403)


async def test_wrong_tokens_are_slowed_down(desks: OpenDesk) -> None:
    async with client(desks(token=TOKEN), headers={"authorization": "Bearer no"}) as program:
        answers = [await program.get("/api/queues") for _ in range(FREE + 1)]
        right = await program.get("/api/queues", headers={"authorization": f"Bearer {TOKEN}"})

    assert [answer.status_code for answer in answers] == [401] * FREE + [429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert right.status_code == 429


async def test_wrong_passwords_are_slowed_down_and_told_of(desks: OpenDesk) -> None:
    desk = desks(users=USERS)
    async with client(desk) as browser:
        answers = [
            await browser.post("/login", data={"name": name, "password": "guess"}, headers=OWN)
            for name in ["anna"] * FREE + ["anna", "nobody"]
        ]

    assert [answer.status_code for answer in answers] == [401] * FREE + [429, 429]
    assert "Name or password is wrong." in answers[0].text
    told = await desk.reads.refusals()
    assert len(told) == FREE + 2
    assert {one.what for one in told} == {"sign in"}


def test_waiting_doubles_up_to_five_minutes_and_is_forgotten_after_a_success() -> None:
    now = 0.0
    throttle = Throttle(lambda: now)
    waits = []
    for _ in range(FREE + 12):
        waits.append(throttle.wait("anna"))
        throttle.failed("anna")

    assert waits[:FREE] == [0.0] * FREE
    assert waits[FREE : FREE + 3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert max(waits) == LONGEST_WAIT
    assert throttle.wait("bob") == 0.0
    throttle.passed("anna")
    assert throttle.wait("anna") == 0.0


async def test_a_session_ends_by_the_clock_by_signing_out_and_with_its_user(desks: OpenDesk) -> None:
    now = 1_000.0
    settings = DeckSettings(users=USERS, session=60.0, secret="s" * 32)
    access = Access(settings, lambda: now)
    user, cookie = access.sign_in("anna", PASSWORD, "127.0.0.1")

    assert access._signed_in(cookie).role is Role.OPERATOR
    assert not access.is_over(user)
    another = Access(settings, lambda: now)
    assert another._signed_in(cookie).name == "anna"
    access.sign_out(user)
    assert access.is_over(user)
    with pytest.raises(Refused, match="the session has ended"):
        access._signed_in(cookie)
    now += 61
    with pytest.raises(Refused, match="the session has ended"):
        another._signed_in(cookie)
    with pytest.raises(Refused, match="not known any more"):
        Access(DeckSettings(token=TOKEN, secret="s" * 32), lambda: 1_000.0)._signed_in(cookie)
    with pytest.raises(Refused, match="not signed here"):
        Access(DeckSettings(users=USERS), lambda: 1_000.0)._signed_in(cookie)


async def test_whose_session_has_ended_changes_nothing_from_a_page_still_open(
    desks: OpenDesk, session: Session, lab: Lab
) -> None:
    desk = desks(users=USERS)
    Holder(session)
    user, _ = desk.access.sign_in("anna", PASSWORD, "127.0.0.1")
    desk.access.sign_out(user)

    with pytest.raises(Exception, match="your session has ended"):
        await desk.actions.pause(user, QUEUE, None)

    assert lab.count("AuditLog") == 0


async def test_signing_out_takes_the_cookie_away(desks: OpenDesk) -> None:
    async with signed_in(desks(users=USERS), "anna") as browser:
        kept = browser.cookies[COOKIE]
        out = await browser.post("/logout", headers=OWN)
        browser.cookies.set(COOKIE, kept)
        after = await browser.get("/api/queues")

    assert out.status_code == 303
    assert after.status_code == 401


@pytest.mark.parametrize(
    ("name", "address", "status", "pauses"),
    [("anna", "127.0.0.1", 200, 200), ("bob", "127.0.0.1", 200, 403), ("anna", "10.1.1.1", 403, 403)],
)
async def test_a_proxys_header_is_believed_from_its_peers_only(
    desks: OpenDesk, session: Session, name: str, address: str, status: int, pauses: int
) -> None:
    Holder(session)
    desk = desks(proxy_header="X-Forwarded-User", proxy_operators=("anna",))
    async with client(desk, address=address, headers={"x-forwarded-user": name}) as browser:
        read = await browser.get("/api/queues")
        done = await browser.post("/api/queues/pause", json=PAUSE, headers=OWN)

    assert (read.status_code, done.status_code) == (status, pauses)


async def test_no_header_no_entry(desks: OpenDesk) -> None:
    async with client(desks(proxy_header="X-Forwarded-User")) as browser:
        assert (await browser.get("/api/queues")).status_code == 401
        assert (await browser.get("/", headers={"accept": "text/html"})).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {},
    ],
)
async def test_a_page_of_another_site_changes_nothing(
    desks: OpenDesk, session: Session, lab: Lab, headers: dict[str, str]
) -> None:
    Holder(session)
    async with signed_in(desks(users=USERS), "anna") as browser:
        answer = await browser.post("/api/queues/pause", json=PAUSE, headers=headers)

    assert answer.status_code == 403
    assert lab.count("AuditLog") == 0


async def test_an_origin_that_was_named_is_our_own(desks: OpenDesk, session: Session) -> None:
    Holder(session)
    desk = desks(users=USERS, origins=("https://deck.example.com",))
    async with signed_in(desk, "anna") as browser:
        done = await browser.post("/api/queues/pause", json=PAUSE, headers={"origin": "https://deck.example.com"})

    assert done.status_code == 200


async def test_without_authentication_a_foreign_name_of_this_host_is_refused(desk: Desk) -> None:
    """DNS rebinding: a page of evil.example whose name leads to 127.0.0.1."""
    async with client(desk, host="http://evil.example") as browser:
        assert (await browser.get("/api/queues")).status_code == 403
    async with client(desk, host="http://localhost:8420") as browser:
        assert (await browser.get("/api/queues")).status_code == 200


async def test_headers_that_keep_browsers_careful_stand_on_every_answer(desk: Desk) -> None:
    async with client(desk, host="https://localhost") as browser:
        for path in ("/api/queues", "/nothing", "/api/nothing"):
            headers = (await browser.get(path)).headers
            assert headers["x-frame-options"] == "DENY"
            assert headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "max-age" in headers["strict-transport-security"]


def socket_scope(**headers: str) -> dict[str, object]:
    """A browser that opens a socket."""
    raw = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return {
        "type": "websocket", "path": "/_nicegui_ws/socket.io/", "query_string": b"", "scheme": "ws", "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8420"), *raw], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8420),
        "subprotocols": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 4401),
        ({"origin": HOST}, 4401),
        ({"cookie": True}, 4403),
        ({"cookie": True, "origin": "https://evil.example"}, 4403),
        ({"cookie": True, "origin": HOST}, None),
    ],
)
async def test_a_socket_needs_a_session_and_our_own_origin(headers: dict[str, str | bool], code: int | None) -> None:
    access = Access(settings := DeckSettings(users=USERS))
    _, cookie = access.sign_in("vera", PASSWORD, "127.0.0.1")
    reached, sent = [], []

    async def inner(scope: object, receive: object, send: object) -> None:
        reached.append(scope)

    async def send(message: Message) -> None:
        sent.append(message)

    given = {name: f"{COOKIE}={cookie}" if value is True else str(value) for name, value in headers.items()}
    await Gate(inner, access, settings)(socket_scope(**given), never, send)  # type: ignore[arg-type]

    assert bool(reached) == (code is None)
    assert [message.get("code") for message in sent] == ([] if code is None else [code])


async def never() -> Message:
    """Nothing comes."""
    await asyncio.Event().wait()
    raise AssertionError


async def test_an_open_socket_ends_with_its_session() -> None:
    access = Access(settings := DeckSettings(users=USERS))
    user, cookie = access.sign_in("vera", PASSWORD, "127.0.0.1")
    got = []

    async def inner(scope: object, receive: object, send: object) -> None:
        got.append(await receive())  # type: ignore[operator]
        access.sign_out(user)
        got.append(await receive())  # type: ignore[operator]

    async def pings() -> Message:
        return {"type": "websocket.receive", "text": "2"}

    scope = socket_scope(cookie=f"{COOKIE}={cookie}", origin=HOST)
    await Gate(inner, access, settings)(scope, pings, pings)  # type: ignore[arg-type]

    assert [message["type"] for message in got] == ["websocket.receive", "websocket.disconnect"]


async def test_destruction_is_confirmed_by_the_words_of_the_command_line(desks: OpenDesk, session: Session) -> None:
    job = new_job()
    session.enqueue_jobs([job])
    holder = Holder(session)
    holder.succeed(holder.take(1))
    async with client(
        desks(token=TOKEN, token_role="operator"), headers={"authorization": f"Bearer {TOKEN}"}
    ) as program:
        refused = await program.post("/api/jobs/purge", json={"ids": [job.id], "confirm": "yes"})
        done = await program.post("/api/jobs/purge", json={"ids": [job.id], "confirm": "purge 1"})

    assert (refused.status_code, refused.json()["detail"]) == (
        400, "not confirmed: 'purge 1' was to be typed; nothing was changed",
    )  # fmt: skip
    assert (done.status_code, done.json()[0]["result"]) == (200, "accepted")


async def test_a_password_of_the_proxys_own_is_no_token(desks: OpenDesk) -> None:
    """A proxy that asks for a password passes it on."""
    desk = desks(proxy_header="X-Forwarded-User", token=TOKEN)
    headers = {"x-forwarded-user": "anna", "authorization": "Basic YW5uYTp4"}
    async with client(desk, headers=headers) as browser:
        assert (await browser.get("/api/queues")).status_code == 200


async def test_a_trusted_proxy_says_where_somebody_is_and_how_they_came(desks: OpenDesk) -> None:
    desk = desks(users=USERS, proxy_peers=("10.0.0.0/8",))
    told = {"x-forwarded-for": "6.6.6.6, 192.0.2.7", "x-forwarded-proto": "https", "origin": HOST}
    fields = {"name": "anna", "password": PASSWORD}
    async with client(desk, address="10.1.1.1", headers=told) as behind, client(desk, headers=told) as alone:
        secure = await behind.post("/login", data=fields)
        plain = await alone.post("/login", data=fields)
        for browser in (behind, alone):
            await browser.post("/login", data=fields | {"password": "no"})

    assert "secure" in secure.headers["set-cookie"].lower()
    assert "secure" not in plain.headers["set-cookie"].lower()
    assert [one.address for one in await desk.reads.refusals()] == ["127.0.0.1", "192.0.2.7"]


async def test_what_the_store_refuses_is_no_outage(desk: Desk) -> None:
    desk.live.failed(StoreRefused("a value it cannot hold"))
    assert desk.live.state.stale_since is None
    desk.live.failed(StoreUnavailable("the server does not answer"))
    assert desk.live.state.stale_since is not None


async def test_below_a_path_of_another_application_everything_stays_below_it(desks: OpenDesk) -> None:
    outer = Starlette()
    outer.mount("/ops", build_site(desks(users=USERS, base="/ops"), pages=False))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url=HOST) as browser:
        sent = await browser.get("/ops/jobs?q=x", headers={"accept": "text/html"})
        form = await browser.get(sent.headers["location"])
        back = await browser.post(
            "/ops/login", data={"name": "anna", "password": PASSWORD, "next": "/jobs?q=x"}, headers=OWN
        )
        read = await browser.get("/ops/api/queues")
        refused = await browser.get("/ops/api/queues", headers={"cookie": "", "origin": "https://evil.example"})

    assert sent.headers["location"] == "/ops/login?next=%2Fjobs%3Fq%3Dx"
    assert 'action="/ops/login"' in form.text
    assert back.headers["location"] == "/ops/jobs?q=x"
    assert "path=/ops" in back.headers["set-cookie"].lower()
    assert read.status_code == 200
    assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
