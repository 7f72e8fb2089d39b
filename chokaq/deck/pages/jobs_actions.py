"""What may be done with the jobs of a list: with those selected, or with all that a filter of the DLQ means."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from chokaq.deck.pages import words
from chokaq.deck.pages.dialogs import Question, Values
from chokaq.deck.pages.filter_action import FilterAction
from chokaq.deck.pages.nodes import Node, button, el
from chokaq.deck.shown import JobsPage
from chokaq.lifecycle.states import Pillar
from chokaq.operations.confirm import Action
from chokaq.operations.errors import OperationError
from chokaq.store.records import CancelAnswer, JobView
from chokaq.store.repairs import RepairAnswer

if TYPE_CHECKING:
    from chokaq.deck.pages.jobs import JobsScreen
    from chokaq.deck.pages.screen import Screen

TOLD = {
    Action.CANCEL: (
        "Cancel",
        "Waiting jobs end Cancelled at once, running ones are told to stop. Jobs that have ended stay as they are.",
    ),
    Action.RESURRECT: (
        "Resurrect",
        "They return to Pending with their key, priority and headers, and begin again: what they did before may be done twice.",
    ),
    Action.DROP: ("Drop", "They are decided never to run. They stay readable, and there is no way back."),
    Action.PURGE: (
        "Purge",
        "They are deleted, with their payloads and errors. Only the audit log remembers them. There is no way back.",
    ),
}
_DONE = {Action.RESURRECT: "resurrected", Action.DROP: "dropped", Action.PURGE: "purged"}
_REPAIRED = {
    "wrong_state": "in a state where this is not allowed",
    "unknown": "unknown by now",
    "key_conflict": "refused: another live job holds the key",
}
_CANCELLED = {
    "cancelled": "cancelled",
    "requested": "told to stop",
    "final": "had already ended",
    "unknown": "unknown by now",
}


def allowed(jobs: Sequence[JobView]) -> list[Action]:
    """The actions that make sense for at least one of these jobs."""
    pillars = {job.pillar for job in jobs}
    found = []
    if Pillar.HOT in pillars:
        found.append(Action.CANCEL)
    if Pillar.DLQ in pillars:
        found += [Action.RESURRECT, Action.DROP]
    if pillars & {Pillar.DLQ, Pillar.ARCHIVE}:
        found.append(Action.PURGE)
    return found


class JobActions:
    """The bar above the list."""

    def __init__(self, owner: "JobsScreen") -> None:
        """Of this list."""
        self._owner, self._screen = owner, owner.screen
        for action in TOLD:
            self._screen.on(action.value, partial(self._ask, action))
        self._screen.on("by-filter", self._by_filter)
        self._screen.on("unselect", self._unselect)

    def bar(self, moved: bool) -> Node:
        """What may be done now; always as high, so that nothing moves below it."""
        if not self._screen.user.may_change:
            return el("div.tools", el("span.faint", "You look as a viewer: nothing can be changed from here."))
        chosen = self._chosen()
        if not chosen:
            hint = el("span.faint", "Select jobs to cancel, resurrect, drop or purge them.")
            many = (
                button(
                    "by-filter",
                    "All that fit…",
                    title="Act on every job of the DLQ that fits this filter, after a preview",
                )
                if self._in_dlq()
                else None
            )
            return el("div.tools", hint, many)
        buttons = [
            button(action.value, TOLD[action][0], kind="danger-quiet" if action in (Action.DROP, Action.PURGE) else "")
            for action in allowed(chosen)
        ]
        return el(
            "div.tools.active",
            el("b", f"{words.jobs(len(self._owner.selected))} selected"),
            *buttons,
            button("unselect", "Unselect", kind="quiet"),
            el(
                "span.note-line",
                "The list has moved on; it is held while you select. ",
                button("again", "Show", kind="small"),
            )
            if moved
            else None,
        )

    def _in_dlq(self) -> bool:
        return (
            self._owner.where.pillar is Pillar.DLQ
            and isinstance(self._owner.part.data, JobsPage)
            and bool(self._owner.part.data.jobs)
        )

    def _chosen(self) -> list[JobView]:
        data = self._owner.part.data
        return [job for job in data.jobs if job.id in self._owner.selected] if isinstance(data, JobsPage) else []

    def _unselect(self, _: object) -> None:
        self._owner.selected.clear()
        self._owner.part.redraw()
        self._owner.draw_tools()

    def _ask(self, action: Action, _: object) -> None:
        ids = [job.id for job in self._chosen()]
        if not ids:
            raise OperationError("select jobs first")
        due = self._screen.desk.actions.confirmation(action, len(ids))

        async def run(values: Values) -> str:
            told = await perform(self._screen, action, ids, values)
            await self._owner.after_action()
            return told

        verb, told = TOLD[action]
        Question(
            self._screen,
            f"{verb} {words.jobs(len(ids))}?",
            run,
            body=[el("p", told), _named(ids)],
            verb=verb,
            danger=action in (Action.DROP, Action.PURGE),
            confirmation=due,
            reason="required" if action is Action.DROP else "optional",
        )

    def _by_filter(self, _: object) -> None:
        async def run(action: Action, ids: Sequence[str], values: Values) -> str:
            told = await perform(self._screen, action, ids, values, by_filter=True)
            await self._owner.after_action()
            return told

        FilterAction(self._screen, self._owner.where, run)


async def perform(
    screen: "Screen", action: Action, ids: Sequence[str], values: Values, *, by_filter: bool = False
) -> str:
    """Do an action with jobs; what became of them, in words."""
    actions, user, reason, typed = screen.desk.actions, screen.user, values["reason"], values["typed"]
    if action is Action.CANCEL:
        return _sum_up(action, await actions.cancel(user, ids, reason, typed))
    if action is Action.RESURRECT:
        without_key = bool(values.get("without_key"))
        return _sum_up(
            action, await actions.resurrect(user, ids, reason, typed, by_filter=by_filter, without_key=without_key)
        )
    do = actions.drop if action is Action.DROP else actions.purge
    return _sum_up(action, await do(user, ids, reason, typed, by_filter=by_filter))


def _sum_up(action: Action, answers: Sequence[RepairAnswer | CancelAnswer]) -> str:
    known = _CANCELLED if action is Action.CANCEL else _REPAIRED | {"accepted": _DONE[action]}
    said = Counter(known.get(answer.result, answer.result) for answer in answers)
    return ", ".join(f"{count:,} {words_}" for words_, count in said.most_common()) + "."


def _named(ids: Sequence[str]) -> Node:
    return el(
        "ul.ids",
        *(el("li", job_id) for job_id in ids[:5]),
        el("li.faint", f"and {len(ids) - 5:,} more") if len(ids) > 5 else None,
    )
