"""Editing a job: its payload as JSON, its tags and priority; saved where it stands, or resurrected in the same step."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from nicegui import ui
from nicegui.elements.json_editor import JsonEditor

from chokaq.deck.pages.fragment import Fragment
from chokaq.deck.pages.nodes import Node, button, el
from chokaq.deck.pages.screen import Screen, attempt
from chokaq.deck.shown import JobPage
from chokaq.lifecycle.states import Pillar
from chokaq.operations.errors import OperationError
from chokaq.store.repairs import RepairAnswer

ASKED = 5.0
"""Seconds a browser gets to say what stands in its editor."""
_REFUSED = {
    "wrong_state": "it has moved on and cannot be edited any more: close this and look where it stands",
    "unknown": "there is no such job any more",
    "key_conflict": "another live job holds its key",
}


class EditJob:
    """The dialog. What is typed is checked as JSON at every stroke, and by the job's type when it is saved."""

    def __init__(self, screen: Screen, page: JobPage, after: Callable[[], Awaitable[None]]) -> None:
        """`after`: called when something was saved."""
        self._screen, self._page, self._after = screen, page, after
        self._job = page.detail.job
        self._text = self._before = page.payload
        self._json: JsonEditor | None = None
        self._problem: str | None = None
        self._fine: str | None = None
        self._busy = False
        with screen.overlay, ui.dialog() as self.dialog, ui.element("div").classes("dialog wide"):
            Fragment(self._act, [el("h2", "Edit this job"), el("p.faint", f"{self._job.type_key} · {self._job.id}")])
            if not page.payload_cut:
                self._editor()
            self._foot = Fragment(self._act)
        self.dialog.on("hide", self.dialog.delete)
        self._show()
        self.dialog.open()

    def _editor(self) -> None:
        properties = {
            "content": {"text": self._text},
            "mode": "text",
            "mainMenuBar": False,
            "statusBar": False,
            "indentation": 2,
        }
        self._json = ui.json_editor(properties, on_change=lambda event: self._typed(event.content)).classes("editor")

    def _typed(self, content: dict[str, Any]) -> None:
        self._take(content)
        self._fine = None
        self._problem = _json_problem(self._text)
        self._show()

    def _take(self, content: dict[str, Any]) -> None:
        self._text = content["text"] if "text" in content else orjson.dumps(content.get("json")).decode()

    async def _catch_up(self) -> None:
        """The editor tells what was typed a moment late: ask for what stands there now."""
        if self._json is None:
            return
        try:
            self._take(await self._json.run_editor_method("get", timeout=ASKED))
        except TimeoutError:
            raise OperationError("the browser did not say what stands in the editor; nothing was changed") from None

    def _show(self) -> None:
        job = self._job
        stopped = job.pillar is Pillar.DLQ
        blocked = self._busy or self._problem_is_json()
        told: Node = None
        if self._problem:
            told = el("p.problem", self._problem, role="alert")
        elif self._fine:
            told = el("p.fine", self._fine, role="status")
        self._foot.show(
            el(
                "form.foot",
                el("p.faint", "The payload is too long to be edited here.") if self._page.payload_cut else None,
                el(
                    "div.line",
                    el(
                        "label.field",
                        el("span", "Tags"),
                        el("input", name="tags", initial=job.tags or "", maxlength="1000", autocomplete="off"),
                    ),
                    el(
                        "label.field.narrow",
                        el("span", "Priority"),
                        el("input", name="priority", type="number", min="0", max="1000000", initial=str(job.priority)),
                    ),
                ),
                el(
                    "label.field",
                    el("span", "Reason (optional)"),
                    el("input", name="reason", maxlength="1000", autocomplete="off"),
                ),
                told,
                el(
                    "div.buttons",
                    button("close", "Leave it as it is", kind="quiet"),
                    button("check", "Check", disabled=self._page.payload_cut),
                    el("button.btn", "Save only", type="submit", name="how", value="save", disabled=blocked)
                    if stopped
                    else None,
                    el(
                        "button.btn.primary",
                        "Save and resurrect" if stopped else "Save",
                        type="submit",
                        name="how",
                        value="resurrect" if stopped else "save",
                        disabled=blocked,
                    ),
                ),
                act="submit",
            )
        )

    def _problem_is_json(self) -> bool:
        return _json_problem(self._text) is not None

    async def _act(self, name: str, value: object) -> None:
        if name == "close":
            self.dialog.close()
        elif name == "check":
            await self._check()
        elif name == "submit" and not self._busy and isinstance(value, dict):
            await self._submit(value)

    async def _check(self) -> None:
        self._fine = None

        async def ask(_: object) -> None:
            await self._catch_up()
            refused = _json_problem(self._text) or await self._screen.desk.actions.check_payload(
                self._job.id, self._text
            )
            if refused is not None:
                raise OperationError(refused)

        self._problem = await attempt(ask, None)
        if self._problem is None:
            self._fine = (
                "It fits the contract of its type."
                if self._page.type_known
                else "It is JSON; its type is not known here."
            )
        self._show()

    async def _submit(self, values: dict[str, Any]) -> None:
        self._busy, self._problem, self._fine = True, None, None
        self._show()
        told: list[str] = []

        async def run(_: object) -> None:
            told.append(await self._save(values))

        self._problem = await attempt(run, None)
        self._busy = False
        if self._problem is not None:
            self._show()
            return
        self.dialog.close()
        await self._after()
        self._screen.tell(told[0])

    async def _save(self, values: dict[str, Any]) -> str:
        await self._catch_up()
        actions, user, job = self._screen.desk.actions, self._screen.user, self._job
        edits: dict[str, Any] = {}
        if not self._page.payload_cut and self._text != self._before:
            edits["payload"] = self._text
        if values["tags"].strip() != (job.tags or ""):
            edits["tags"] = values["tags"].strip()
        priority = _priority(values["priority"])
        if priority != job.priority:
            edits["priority"] = priority
        if values["how"] == "resurrect":
            answers = await actions.resurrect(user, [job.id], values["reason"], **edits)
            _accepted(answers[0])
            return "Resurrected with what you changed." if edits else "Resurrected as it was."
        _accepted(await actions.edit(user, job.id, values["reason"], **edits))
        return "Saved."


def _accepted(answer: RepairAnswer) -> None:
    if answer.result != "accepted":
        holder = f" (job {answer.holder})" if answer.holder else ""
        raise OperationError(f"{_REFUSED.get(answer.result, answer.result)}{holder}; nothing was changed")


def _priority(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OperationError(f"priority: {text!r} is not a whole number") from None


def _json_problem(text: str) -> str | None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f"This is not JSON: {error}."
    return None
