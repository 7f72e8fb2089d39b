"""The server under The Deck: uvicorn, told what it needs to know."""

import signal
import socket
from collections.abc import Callable
from typing import Any

import structlog
import uvicorn

from chokaq.config.combinations import exposed
from chokaq.config.errors import ConfigError, Problem
from chokaq.config.load import Loaded
from chokaq.deck.desk import open_desks
from chokaq.deck.site import build_site
from chokaq.operations.connect import find_store
from chokaq.operations.contracts import check_apart

log = structlog.get_logger("chokaq")

GRACE = 3
"""Seconds that open requests get at the end: sockets stay open for as long as a page does."""


class DeckServer(uvicorn.Server):
    """Says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            host, port = self._listening.getsockname()[:2]
            log.info("deck_ready", url=f"http://{f'[{host}]' if ':' in host else host}:{port}/")
            self._ready()


def serve(loaded: Loaded, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serve The Deck alone until TERM or INT. Raises ConfigError when it must not be served so, or cannot listen there."""
    settings = loaded.settings
    told = exposed(settings.deck)
    if told is not None:
        raise ConfigError([Problem("deck.host", told)], None if settings.source is None else str(settings.source))
    desk = open_desks(loaded, check=check_apart(settings), store=find_store)
    listening = _listen(settings.deck.host, settings.deck.port)
    if not settings.deck.has_authentication:
        log.warning("deck_open", problem="nobody has to sign in: whoever reaches this port on this host is an operator")
    config: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "server_header": False,
        # The gate listens to proxies itself: whether one is trusted is asked of the address that is connected.
        "proxy_headers": False,
        "timeout_graceful_shutdown": GRACE,
        "lifespan": "on",
        "ws": "websockets-sansio",
    }
    for number in (signal.SIGTERM, signal.SIGINT):
        # The server takes them while it runs, and raises them again at its end, when they have done their work.
        signal.signal(number, lambda _number, _frame: None)
    with listening:
        DeckServer(uvicorn.Config(build_site(desk), **config), listening, ready).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        [(family, kind, number, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        listening = socket.socket(family, kind, number)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise ConfigError(
            [Problem("deck.port", f"cannot listen on {host}:{port}: {error.strerror or error}")]
        ) from None
    return listening
