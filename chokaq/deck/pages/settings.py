"""The settings as they hold, each with where its value came from. Nothing can be changed here."""

from chokaq.deck.pages.nodes import Node, el
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td
from chokaq.deck.shown import Setting
from chokaq.deck.topics import NOTHING


class SettingsPage:
    """The table, with a field to look for one."""

    def __init__(self, screen: Screen) -> None:
        """On this screen."""
        self._screen = screen
        self._sought = ""
        self._set_only = False
        screen.heading("Settings")
        screen.place(
            el(
                "p.lead",
                "Read-only, as this process holds them. They are changed in chokaq.yaml or in the environment; "
                "what an operator overrides for a queue stands on the page of queues.",
            ),
            el(
                "div.filters",
                el(
                    "div.fields",
                    el(
                        "input.search",
                        type="search",
                        act="seek",
                        live=True,
                        placeholder="Search   /",
                        aria_label="Search settings",
                        data_search="",
                    ),
                    el("label.check", el("input", type="checkbox", act="set-only"), " only those that were set"),
                ),
            ),
        )
        self.part = screen.part(screen.desk.reads.settings, self._draw)
        screen.on("seek", self._seek)
        screen.on("set-only", self._only)

    async def open(self) -> None:
        """Read: they hold until the process ends. Listen, so that this page, too, ends with its sign-in."""
        await self._screen.open(self.part)
        self._screen.listen(NOTHING)

    def _seek(self, value: object) -> None:
        self._sought = str(value).strip().casefold()
        self.part.redraw()

    def _only(self, value: object) -> None:
        self._set_only = bool(value)
        self.part.redraw()

    def _draw(self, settings: list[Setting]) -> list[Node]:
        shown = [
            setting
            for setting in settings
            if self._sought in f"{setting.path} {setting.value} {setting.origin}".casefold()
            and not (self._set_only and setting.origin == "default")
        ]
        if not shown:
            return [empty("No setting fits.")]
        return [table(head("Setting", "Value", "From"), [_row(setting) for setting in shown], "rows", "Settings")]


def _row(setting: Setting) -> Node:
    from_default = setting.origin == "default"
    return el(
        "tr",
        td("Setting", el("code", setting.path), kind="wide"),
        td("Value", el("code" if from_default else "code.strong", setting.value)),
        td("From", el("span.faint" if from_default else "span", setting.origin)),
        key=setting.path,
    )
