"""Who may look and who may change: users with passwords, a token for automation, a trusted proxy's header, signed sessions.

A middleware (`chokaq.deck.gate.Gate`) asks `Access` before anything The Deck serves, sockets included; pages and the API only ask
who was let in.
"""

import hmac
import ipaddress
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec
import structlog
from itsdangerous import BadSignature, URLSafeSerializer
from starlette.requests import HTTPConnection

from chokaq.config.settings import DeckSettings
from chokaq.deck.passwords import is_password
from chokaq.deck.throttle import Throttle
from chokaq.deck.users import Role, User
from chokaq.operations.actor import default_actor

__all__ = ["Access", "Refusal", "Refused", "Role", "User", "user_of"]

log = structlog.get_logger("chokaq")

SCOPE, FORWARDED = "chokaq.user", "chokaq.forwarded_for"
COOKIE = "chokaq_deck"
TOKEN_USER = "token"
"""The name its bearer has in the audit log."""
KEPT_REFUSALS = 200
CLOCKS_APART = 60.0


class Refused(Exception):
    """Somebody is not let in; the text says why, for them."""

    def __init__(self, why: str, *, known: bool = False, wait: float = 0.0) -> None:
        super().__init__(why)
        self.known = known
        """True: who they are is known, and does not suffice; False: they may try to sign in."""
        self.wait = wait
        """Seconds after which another try is looked at."""


class Refusal(msgspec.Struct, frozen=True):
    """One refusal, as The Deck shows it to operators."""

    at: datetime
    who: str
    """A name, as far as one was given; else empty."""
    address: str
    what: str
    """Method and path, or the action."""
    why: str


class Access:
    """Decides who somebody is. Keeps no state that a replica would have to share, but for sessions that were signed out: those
    are told by the database (`hear`)."""

    def __init__(self, settings: DeckSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._signer = URLSafeSerializer(settings.secret or secrets.token_urlsafe(32), salt="chokaq.deck.session")
        self._throttle = Throttle()
        self._ended: dict[str, float] = {}
        self._peers = [ipaddress.ip_network(peer, strict=False) for peer in settings.proxy_peers]
        self.refusals: deque[Refusal] = deque(maxlen=KEPT_REFUSALS)
        """The newest ones of this process, newest last."""

    @property
    def open(self) -> bool:
        """True when nobody has to say who they are (loopback only)."""
        return not self._settings.has_authentication

    @property
    def has_users(self) -> bool:
        """Whether there is somebody who could sign in with a password."""
        return bool(self._settings.users)

    # ── who is it ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def identify(self, request: HTTPConnection) -> User:
        """Who sent a request: by token, by session, by the proxy's header. Raises Refused."""
        address = address_of(request)
        if self.by_token(request):
            return self._bearer(request.headers["authorization"], address)
        name = self._settings.proxy_header
        if name is not None and request.headers.get(name):
            return self._proxied(request.headers[name], peer_of(request))
        cookie = request.cookies.get(COOKIE)
        if cookie:
            return self._signed_in(cookie)
        if self.open:
            return User(default_actor(), Role.OPERATOR)
        raise Refused("sign in first")

    def by_token(self, request: HTTPConnection) -> bool:
        """Whether a request brings a token, where there is one: no browser sends that by itself."""
        return self._settings.token is not None and request.headers.get("authorization", "").lower().startswith(
            "bearer "
        )

    def is_over(self, user: User) -> bool:
        """Whether the sign-in of somebody who was let in has ended since."""
        if user.until is None:
            return False
        return user.until <= self._clock() or user.session in self._ended

    def check_session(self, user: User) -> None:
        """Raises Refused when it has."""
        if self.is_over(user):
            raise Refused("sign in again: the session has ended")

    def _bearer(self, header: str, address: str) -> User:
        key = f"token from {address}"
        wait = self._throttle.wait(key)
        if wait:
            raise Refused("too many wrong tokens from this address: wait", wait=wait)
        given = header.partition(" ")[2].strip()
        if hmac.compare_digest(given.encode(), (self._settings.token or "").encode()):
            self._throttle.passed(key)
            return User(TOKEN_USER, Role(self._settings.token_role))
        self._throttle.failed(key)
        raise Refused("this is not the token (Authorization: Bearer …)")

    def _proxied(self, name: str, peer: str) -> User:
        if not self.is_proxy(peer):
            raise Refused(
                f"the header {self._settings.proxy_header} is believed from deck.proxy_peers only, not from {peer}",
                known=True,
            )
        actor = name.strip()
        if not 0 < len(actor) <= 100 or not actor.isprintable():
            raise Refused(f"the proxy's header {self._settings.proxy_header} holds no name", known=True)
        return User(actor, Role.OPERATOR if actor in self._settings.proxy_operators else Role.VIEWER)

    def is_proxy(self, address: str) -> bool:
        """Whether what comes from this address is a proxy's word."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in peer for peer in self._peers)

    def _signed_in(self, cookie: str) -> User:
        try:
            name, until, session = self._signer.loads(cookie)
        except (BadSignature, ValueError, TypeError):
            raise Refused("sign in again: the session was not signed here") from None
        known = self._settings.users.get(name)
        if known is None:
            raise Refused("sign in again: this user is not known any more")
        user = User(name, Role(known.role), until, session)
        self.check_session(user)
        return user

    # ── signing in and out ────────────────────────────────────────────────────────────────────────────────────────────
    def sign_in(self, name: str, password: str, address: str) -> tuple[User, str]:
        """Who it is, and the cookie's value. Takes some 50 ms of CPU: call it in a thread. Raises Refused."""
        keys = (f"user {name}", f"address {address}")
        wait = self._throttle.wait(*keys)
        if wait:
            raise Refused(f"too many wrong passwords: try again in {wait:.0f} s", wait=wait)
        known = self._settings.users.get(name)
        if not is_password(password, None if known is None else known.password_hash) or known is None:
            self._throttle.failed(*keys)
            raise Refused("name or password is wrong")
        self._throttle.passed(*keys)
        user = User(name, Role(known.role), self._clock() + self._settings.session, secrets.token_urlsafe(12))
        log.info("deck_signed_in", user=name, role=known.role, address=address)
        return user, str(self._signer.dumps([user.name, user.until, user.session]))

    def sign_out(self, user: User) -> None:
        """End a session in this process, its open pages included."""
        if user.session is not None and user.until is not None:
            self._end({user.session: user.until})
            log.info("deck_signed_out", user=user.name)

    def hear(self, signed_out: Mapping[str, int]) -> None:
        """Sessions were ended, here or in another process. Each with the milliseconds it would still go on."""
        if signed_out:
            now = self._clock()
            # A little longer: the clocks of two hosts differ.
            self._end({session: now + ms / 1_000 + CLOCKS_APART for session, ms in signed_out.items()})

    def _end(self, sessions: Mapping[str, float]) -> None:
        now = self._clock()
        self._ended = {session: until for session, until in self._ended.items() if until > now} | dict(sessions)

    # ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def refuse(self, what: str, why: str, *, who: str = "", address: str = "") -> None:
        """Note a refusal: in the log, and for the operators."""
        log.warning("deck_refused", what=what, why=why, user=who or None, address=address or None)
        self.refusals.append(Refusal(datetime.now(UTC), who, address, what, why))


def user_of(request: HTTPConnection) -> User:
    """Who sent this request: every request that reaches a page or the API has one."""
    user = request.scope[SCOPE]
    assert isinstance(user, User)
    return user


def peer_of(request: HTTPConnection) -> str:
    """The address that is really connected: a client's, or a proxy's."""
    return request.client.host if request.client is not None else ""


def address_of(request: HTTPConnection) -> str:
    """The address that somebody seems to be at: a proxy's word for it where one is trusted (see the gate)."""
    return str(request.scope.get(FORWARDED) or peer_of(request))
