"""The end of the services that an application holds for the whole process: their own code, which may never end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import structlog

_log = structlog.get_logger("chokaq")
_CANCELLED = 0.5
"""Seconds a closer has to end once it was cancelled."""


async def close_services(
    close: Callable[[], Awaitable[None]], queue: str, limit: float, leave: Callable[[], None]
) -> None:
    """Close them within `limit` seconds; what takes longer is cancelled and left behind, and what raises is logged.

    Every outcome is stored by now, so nothing is lost with them. `leave` ends the process; it is called, from another thread, when
    a closer holds the loop itself. Never raises what a closer raised.
    """
    watchdog = threading.Timer(limit + 2 * _CANCELLED, _blocked, (queue, leave))
    watchdog.daemon = True
    watchdog.start()
    task = asyncio.ensure_future(_quietly(close, queue))
    try:
        await asyncio.wait((task,), timeout=limit)
        if not task.done():
            _log.error("services_close_overdue", queue=queue, limit=limit)
            task.cancel()
            await asyncio.wait((task,), timeout=_CANCELLED)
    finally:
        watchdog.cancel()


async def _quietly(close: Callable[[], Awaitable[None]], queue: str) -> None:
    try:
        await close()
    except Exception as error:  # noqa: BLE001 - the application's own code; every outcome is stored by now
        _log.error("services_close_failed", queue=queue, exc_info=error)


def _blocked(queue: str, leave: Callable[[], None]) -> None:
    _log.error("services_close_blocked", queue=queue)
    leave()
