"""The whole web application: gate, sign-in, API, pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from chokaq.deck import signin, wire
from chokaq.deck.api import build_api
from chokaq.deck.desk import Desk
from chokaq.deck.gate import Gate


def build_site(desk: Desk, *, pages: bool = True) -> FastAPI:
    """An ASGI application to serve, or to mount at `desk.root`. Once per process: the pages' library is one per process.

    `desk`: the first of its desks. `pages` False: the API alone (`/api`, and `/db/NAME/api` of further databases).
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for one in desk.desks:
            await one.start()
        try:
            yield
        finally:
            for one in desk.desks:
                await one.stop()

    site = FastAPI(
        title=f"The Deck of {desk.settings.deck.title}",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(Gate, access=desk.access, settings=desk.settings.deck, base=desk.root, fresh=desk.fresh)
        ],
    )
    site.add_exception_handler(HTTPException, _not_here)
    site.router.routes.extend(signin.routes(desk.access, desk.settings.deck, desk.root, desk.sign_out))
    site.router.routes.append(Route("/favicon.ico", _no_icon))
    for one in desk.desks:
        site.mount(f"{one.base.removeprefix(one.root)}/api", build_api(one))
    if pages:
        _add_pages(site, desk)
    return site


def _add_pages(site: FastAPI, desk: Desk) -> None:
    from nicegui import ui

    from chokaq.deck import pages, theme

    pages.install()
    for one in desk.desks:
        pages.register(one)
    ui.run_with(site, mount_path="/", **theme.RUN_OPTIONS)


async def _not_here(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return wire.problem(status, "Not found" if status == 404 else "Refused", "The Deck has nothing at this address.")


async def _no_icon(_: object) -> Response:
    return Response(status_code=404)
