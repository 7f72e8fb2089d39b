"""How The Deck looks: the options for NiceGUI, the files a browser needs, and colours for charts."""

import hashlib
from pathlib import Path
from typing import Any

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

FILES = Path(__file__).parent / "pages" / "static"
"""Served under `{base}/_deck`; nothing comes from elsewhere."""
ROUTE = "/_deck"
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2757c4"/>'
    '<path d="M8 10h16M8 16h11M8 22h6" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>'
)


def _gzip(app: ASGIApp) -> GZipMiddleware:
    """The lowest level: a page's scripts are a megabyte, sent once to each browser, and The Deck has no CPU to burn."""
    return GZipMiddleware(app, minimum_size=1_000, compresslevel=1)


RUN_OPTIONS: dict[str, Any] = {
    "title": "The Deck",
    "favicon": FAVICON,
    "dark": None,
    "tailwind": False,
    "prod_js": True,
    "binding_refresh_interval": None,
    "reconnect_timeout": 10.0,
    "show_welcome_message": False,
    "gzip_middleware_factory": _gzip,
}
"""For `ui.run_with(app, mount_path=…, **RUN_OPTIONS)`."""

SERIES = {"good": "#3f8f5f", "run": "#3d74d6", "warn": "#d08a1d", "bad": "#cf4a3f", "mute": "#8a94a6"}
"""Colours that stand on a light and on a dark ground."""


def version(name: str) -> str:
    """A mark of a file's content, so that a browser keeps it until it changes."""
    return hashlib.blake2b((FILES / name).read_bytes(), digest_size=6).hexdigest()
