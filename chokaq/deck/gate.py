"""The gate before everything that The Deck serves, sockets included: who is it, where does it come from, which headers go out.

Refusals: a browser that asks for a page is sent to the sign-in; everything else is answered 401, 403 or 429 in words, as problem
JSON under `/api`. Each one is logged and kept for the operators.
"""

import math
import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote, urlsplit

import orjson
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chokaq.config.combinations import is_loopback
from chokaq.config.settings import DeckSettings
from chokaq.deck.access import FORWARDED, SCOPE, Access, Refused, User, address_of, peer_of
from chokaq.deck.html import BOUNCE, page

SAFE = {"GET", "HEAD", "OPTIONS"}
PROBLEM = "application/problem+json"
_CSP = (
    # The pages' library compiles its templates in the browser, and styles elements one by one.
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
)
HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_API = re.compile(r"(/db/[^/]+)?/api(/|$)")
SIGN_IN, SIGN_OUT = "/login", "/logout"


class Gate:
    """ASGI middleware. `base`: the path The Deck is mounted at, without a slash at the end; `fresh`: learns who signed out
    elsewhere, asked before a session is let in."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        settings: DeckSettings,
        base: str = "",
        fresh: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._app = app
        self._access = access
        self._settings = settings
        self._base = base
        self._fresh = fresh

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        self._listen_to_proxy(scope)
        request = HTTPConnection(scope)
        tell = _with_headers(send, secure=request.url.scheme in ("https", "wss"))
        try:
            self._check_origin(request)
            if self._inner_path(scope) == SIGN_IN:
                await self._app(scope, receive, tell)
                return
            user = self._access.identify(request)
            self._check_sender(request, user)
            if user.session is not None and self._fresh is not None:
                await self._fresh()
                self._access.check_session(user)
        except Refused as refused:
            await self._refuse(request, refused, receive, tell)
            return
        scope[SCOPE] = user
        if scope["type"] == "websocket":
            await self._app(scope, self._while_signed_in(user, receive), tell)
        else:
            await self._app(scope, receive, tell)

    def _listen_to_proxy(self, scope: Scope) -> None:
        """Scheme and address as a trusted proxy tells them; the connected peer itself stays known."""
        request = HTTPConnection(scope)
        if not self._access.is_proxy(peer_of(request)):
            return
        told = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        if told:
            scope[FORWARDED] = told[:45]
        if request.headers.get("x-forwarded-proto", "").rpartition(",")[2].strip() == "https":
            scope["scheme"] = "wss" if scope["type"] == "websocket" else "https"

    # ── where does it come from ───────────────────────────────────────────────────────────────────────────────────────
    def _check_origin(self, request: HTTPConnection) -> None:
        """A page of another site may neither open a socket nor change anything. Raises Refused."""
        host = request.headers.get("host", "")
        if self._access.open and not is_loopback(urlsplit(f"//{host}").hostname or ""):
            # A name of somebody else's that leads to this host (DNS rebinding).
            raise Refused(
                f"without authentication The Deck answers under a name of this host only, not {host!r}", known=True
            )
        origin = request.headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            raise Refused(f"a page of {origin} may not talk to The Deck (deck.origins names further ones)", known=True)
        site = request.headers.get("sec-fetch-site", "none")
        method = request.scope.get("method", "GET")
        if site in ("cross-site", "same-site") and not (
            method in SAFE and request.headers.get("sec-fetch-mode") == "navigate"
        ):
            raise Refused("another site may not talk to The Deck", known=True)

    def _check_sender(self, request: HTTPConnection, user: User) -> None:
        """What changes something, and a socket, says which page it comes from; only programs may leave that out."""
        changes = request.scope["type"] == "websocket" or request.scope["method"] not in SAFE
        if not changes or "origin" in request.headers:
            return
        browsers = self._settings.users or self._settings.proxy_header
        if request.scope["type"] == "websocket" or (browsers and not self._access.by_token(request)):
            raise Refused(
                f"no Origin header: {user.name} may change something from The Deck's own pages only", known=True
            )

    def _is_own(self, origin: str, host: str) -> bool:
        return origin in self._settings.origins or (bool(host) and urlsplit(origin).netloc.lower() == host.lower())

    def _inner_path(self, scope: Scope) -> str:
        path: str = scope["path"]
        return path.removeprefix(self._base) if self._base and path.startswith(self._base + "/") else path

    # ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _refuse(self, request: HTTPConnection, refused: Refused, receive: Receive, send: Send) -> None:
        scope = request.scope
        path = self._inner_path(scope)
        method = scope.get("method", "socket")
        navigates = method == "GET" and "text/html" in request.headers.get("accept", "")
        address = address_of(request)
        if not (navigates and not refused.known and "cookie" not in request.headers):
            self._access.refuse(f"{method} {path}", str(refused), address=address)
        if scope["type"] == "websocket":
            await send(
                {"type": "websocket.close", "code": 4403 if refused.known else 4401, "reason": str(refused)[:120]}
            )
            return
        await self._answer(request, refused, path, navigates=navigates)(scope, receive, send)

    def _answer(self, request: HTTPConnection, refused: Refused, path: str, *, navigates: bool) -> Response:
        status = 429 if refused.wait else 403 if refused.known else 401
        headers = {"retry-after": str(math.ceil(refused.wait))} if refused.wait else {}
        if status == 401:
            headers["www-authenticate"] = 'Bearer realm="chokaq"'
        if _API.match(path):
            body = {"type": "about:blank", "title": _TITLES[status], "status": status, "detail": str(refused)}
            return Response(orjson.dumps(body), status, headers, media_type=PROBLEM)
        if navigates and status == 401 and self._access.has_users:
            if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                # A link that a colleague sent: the strict cookie comes along once the page itself asks again.
                return HTMLResponse(BOUNCE)
            target = quote(path + (f"?{request.url.query}" if request.url.query else ""), safe="")
            return RedirectResponse(f"{self._base}{SIGN_IN}?next={target}", 303)
        return HTMLResponse(page(_TITLES[status], str(refused)), status, headers)

    def _while_signed_in(self, user: User, receive: Receive) -> Receive:
        """A socket ends with its session: at the next message, and its pings come every few seconds."""

        async def guarded() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive" and self._access.is_over(user):
                return {"type": "websocket.disconnect", "code": 4401}
            return message

        return guarded


_TITLES = {401: "Sign in first", 403: "Not allowed", 429: "Too many tries"}


def _with_headers(send: Send, *, secure: bool) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if secure:
                headers.setdefault("strict-transport-security", "max-age=31536000")
        await send(message)

    return tell
