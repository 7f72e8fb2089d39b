"""The pages, on NiceGUI."""

from chokaq.deck.desk import Desk


def register(desk: Desk) -> None:
    """Declare every page (`@ui.page("/")`, `/queues`, `/jobs`, `/jobs/{job_id}`, `/workers`, `/circuits`, `/audit`, `/settings`).

    Called once per process, before anything is served. A page gets its user by `access.user_of(request)`.
    """
