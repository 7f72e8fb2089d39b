"""The pages. `install()` once, `register(desk)` for each desk; then `ui.run_with(app, mount_path="/", **theme.RUN_OPTIONS)`."""

from chokaq.deck.pages.routes import install, register

__all__ = ["install", "register"]
