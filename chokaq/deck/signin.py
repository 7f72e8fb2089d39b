"""Signing in and out: two plain pages, so that nobody who is not let in ever opens a socket."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from chokaq.config.settings import DeckSettings
from chokaq.deck.access import COOKIE, Access, Refused, address_of, user_of
from chokaq.deck.gate import SIGN_IN, SIGN_OUT
from chokaq.deck.html import STRICT_CSP, sign_in_page
from chokaq.deck.users import User

MAX_BODY = 10_000


def routes(access: Access, settings: DeckSettings, base: str, end: Callable[[User], Awaitable[None]]) -> list[Route]:
    """`/login` (GET, POST) and `/logout` (POST). `end`: ends a session, in all processes."""

    def form(target: str, problem: str | None = None, name: str = "", status: int = 200) -> Response:
        text = sign_in_page(settings.title, base + SIGN_IN, target, problem, name)
        return HTMLResponse(text, status, {"content-security-policy": STRICT_CSP, "cache-control": "no-store"})

    async def show(request: Request) -> Response:
        if not access.has_users:
            return RedirectResponse(f"{base}/", 303)
        return form(local(request.query_params.get("next")))

    async def sign_in(request: Request) -> Response:
        fields = await _fields(request)
        name, target = fields.get("name", "").strip()[:100], local(fields.get("next"))
        address = address_of(request)
        try:
            user, cookie = await run_in_threadpool(access.sign_in, name, fields.get("password", ""), address)
        except Refused as refused:
            access.refuse("sign in", str(refused), who=name, address=address)
            return form(target, f"{str(refused).capitalize()}.", name, 429 if refused.wait else 401)
        answer = RedirectResponse(base + target, 303)
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=int(settings.session),
            path=base or "/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        assert user.until is not None
        return answer

    async def sign_out(request: Request) -> Response:
        await end(user_of(request))
        answer = RedirectResponse(base + SIGN_IN, 303)
        answer.delete_cookie(COOKIE, path=base or "/", httponly=True, samesite="strict")
        return answer

    return [
        Route(SIGN_IN, show, methods=["GET"]),
        Route(SIGN_IN, sign_in, methods=["POST"]),
        Route(SIGN_OUT, sign_out, methods=["POST"]),
    ]


def local(target: str | None) -> str:
    """Where to go after signing in: a path of The Deck, never another site."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")) or not target.isprintable():
        return "/"
    return target


async def _fields(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return {}
    return {
        name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).items()
    }
