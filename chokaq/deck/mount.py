"""The Deck inside an application's own ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from chokaq.config.load import with_origins
from chokaq.deck.program import require_extra

if TYPE_CHECKING:
    from chokaq.app import ChokaQ


def mount_deck(app: "ChokaQ", asgi_app: Any, path: str = "/chokaq") -> None:
    """See `ChokaQ.mount_deck`."""
    require_extra()
    from chokaq.deck.desk import open_desks
    from chokaq.deck.site import build_site
    from chokaq.operations.connect import find_store
    from chokaq.operations.contracts import check_by

    base = f"/{path.strip('/')}" if path.strip("/") else ""
    if not base:
        raise ValueError("mount The Deck below a path of its own, like '/chokaq'")
    if not hasattr(asgi_app, "mount") or not hasattr(asgi_app, "router"):
        raise TypeError(
            f"The Deck is mounted in a FastAPI or Starlette application, not in a {type(asgi_app).__name__}"
        )
    desk = open_desks(with_origins(app.settings), base=base, check=check_by(app.registry), store=find_store)
    site = build_site(desk)
    asgi_app.mount(base, site)
    outer = asgi_app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(whole: Any) -> AsyncIterator[Any]:
        # A mounted application is not told of start and end: the outer one's lifespan carries it along.
        async with outer(whole) as state, site.router.lifespan_context(site):
            yield state

    asgi_app.router.lifespan_context = lifespan
