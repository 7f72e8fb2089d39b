"""Questions over a page: what will be done, why, and, where the rules of the operations say so, a phrase to be typed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import ui

from chokaq.deck.pages.fragment import Fragment
from chokaq.deck.pages.nodes import Node, button, el
from chokaq.deck.pages.screen import Screen, attempt
from chokaq.operations.confirm import Confirmation

Values = Mapping[str, Any]
Run = Callable[[Values], Awaitable[str | None]]


class Question:
    """A dialog with a form. `run(values)` does it and answers what to tell; a refusal is shown in the dialog, which stays."""

    def __init__(
        self,
        screen: Screen,
        title: str,
        run: Run,
        *,
        body: Sequence[Node] = (),
        verb: str,
        danger: bool = False,
        confirmation: Confirmation | None = None,
        reason: str | None = "optional",
        fields: Sequence[Node] = (),
        wide: bool = False,
    ) -> None:
        """`fields`: named inputs, before the reason; `reason`: `optional`, `required`, or None for no such field."""
        self._screen, self._run = screen, run
        self._title, self._verb, self._danger, self._reason = title, verb, danger, reason
        self.body, self.fields, self.confirmation = list(body), list(fields), confirmation
        self._typed = ""
        self._problem: str | None = None
        self._busy = False
        with screen.overlay, ui.dialog() as self.dialog, ui.element("div").classes("dialog wide" if wide else "dialog"):
            self.fragment = Fragment(self._act)
            self.extra = ui.element("div")
            self.foot = Fragment(self._act)
        self.dialog.on("hide", self.dialog.delete)
        self.show()
        self.dialog.open()

    def show(self) -> None:
        """Draw it as it stands."""
        self.fragment.show(el("h2", self._title), *self.body)
        phrase = self.confirmation.phrase if self.confirmation else None
        confirmed = phrase is None or self._typed.casefold().split() == phrase.casefold().split()
        self.foot.show(
            el(
                "form.foot",
                *self.fields,
                self._reason_field(),
                self._phrase_field(phrase),
                el("p.problem", self._problem, role="alert") if self._problem else None,
                el(
                    "div.buttons",
                    button("close", "Leave it as it is", kind="quiet"),
                    el(
                        f"button.btn.{'danger' if self._danger else 'primary'}",
                        self._verb,
                        type="submit",
                        disabled=not confirmed or self._busy,
                    ),
                ),
                act="submit",
            )
        )

    def _reason_field(self) -> Node:
        if self._reason is None:
            return None
        words = "Reason" if self._reason == "required" else "Reason (optional)"
        first = self.confirmation is None
        return el(
            "label.field",
            el("span", words),
            el(
                "input",
                name="reason",
                maxlength="1000",
                autocomplete="off",
                required=self._reason == "required",
                focus=first,
            ),
        )

    def _phrase_field(self, phrase: str | None) -> Node:
        if phrase is None:
            return None
        return el(
            "label.field",
            el("span", "Type ", el("kbd", phrase), " to confirm"),
            el("input", name="typed", act="typed", live=True, autocomplete="off", spellcheck="false", focus=True),
        )

    async def _act(self, name: str, value: object) -> None:
        if name == "close":
            self.dialog.close()
        elif name == "typed":
            self._typed = str(value)
            self.show()
        elif name == "submit" and not self._busy:
            await self._submit(value if isinstance(value, dict) else {})

    async def _submit(self, values: Values) -> None:
        self._busy, self._problem = True, None
        self.show()
        told: list[str | None] = []

        async def run(_: object) -> None:
            told.append(await self._run({"reason": None, "typed": "", **values}))

        self._problem = await attempt(run, None)
        self._busy = False
        if self._problem is not None:
            self.show()
            return
        self.dialog.close()
        if told and told[0]:
            self._screen.tell(told[0])
