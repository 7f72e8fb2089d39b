"""The pages. `register(desk)` once, before `ui.run_with(app, mount_path=desk.base or "/", **chokaq.deck.theme.RUN_OPTIONS)`."""

from chokaq.deck.pages.routes import register

__all__ = ["register"]
