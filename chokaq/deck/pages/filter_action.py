"""An action on all jobs of the DLQ that fit a filter: choose, look at what it would touch, type the phrase."""

from collections.abc import Awaitable, Callable, Sequence

from chokaq.deck import reads
from chokaq.deck.pages import words
from chokaq.deck.pages.dialogs import Question, Values
from chokaq.deck.pages.nodes import Node, el, link
from chokaq.deck.pages.screen import Screen
from chokaq.deck.shown import Search
from chokaq.operations.confirm import Action
from chokaq.operations.errors import OperationError
from chokaq.operations.repair import DEFAULT_MAXIMUM, Preview

Run = Callable[[Action, Sequence[str], Values], Awaitable[str]]

_MAXIMA = (100, 500, 1_000)
_VERBS = {Action.RESURRECT: "Resurrect", Action.DROP: "Drop", Action.PURGE: "Purge"}


class FilterAction:
    """Two dialogs: what to do and with how many; then the preview with its confirmation."""

    def __init__(self, screen: Screen, where: Search, run: Run) -> None:
        """For this filter; `run(action, ids, values)` does it and answers what became of them."""
        self._screen, self._where, self._run = screen, where, run
        chosen = [el("option", verb, value=action.value) for action, verb in _VERBS.items()]
        most = [el("option", f"{count:,}", value=str(count)) for count in _MAXIMA]
        fields = [
            el(
                "label.field",
                el("span", "What to do"),
                el("select", *chosen, name="action", initial=Action.RESURRECT.value, focus=True),
            ),
            el(
                "label.field",
                el("span", "With at most so many jobs, newest first"),
                el("select", *most, name="maximum", initial=str(DEFAULT_MAXIMUM)),
            ),
        ]
        Question(
            screen,
            "Act on all jobs that fit",
            self._preview,
            body=[_told(where)],
            fields=fields,
            verb="Preview",
            reason=None,
        )

    async def _preview(self, values: Values) -> None:
        action, maximum = Action(values["action"]), int(values["maximum"])
        found = await self._screen.desk.reads.preview(self._where, action.value, maximum)
        if not found.ids:
            raise OperationError("no job fits this filter now that could be acted on")
        due = self._screen.desk.actions.confirmation(action, len(found.ids), by_filter=True)

        async def run(typed: Values) -> str:
            return await self._run(action, found.ids, typed)

        Question(
            self._screen,
            f"{_VERBS[action]} {words.jobs(len(found.ids))}?",
            run,
            body=[_told(self._where), *self._seen(found)],
            verb=_VERBS[action],
            danger=action is not Action.RESURRECT,
            confirmation=due,
            reason="required" if action is Action.DROP else "optional",
        )

    def _seen(self, found: Preview) -> list[Node]:
        more = "more than " if found.more else ""
        line = f"{more}{words.jobs(found.matched)} fit now; this touches the newest {len(found.ids):,}."
        rest = " Do it again for the others." if found.truncated else ""
        sample = [el("li", link(self._screen.job_url(job_id), job_id, target="_blank")) for job_id in found.sample[:8]]
        left = len(found.ids) - len(sample)
        return [
            el(
                "p",
                el("b", line[0].upper() + line[1:]),
                rest,
                " Each job is judged anew when it is done: one that has moved on stays as it is.",
            ),
            el("ul.ids", *sample, el("li.faint", f"and {left:,} more") if left > 0 else None),
        ]


def _told(where: Search) -> Node:
    said = [
        el("li", el("span.faint", name.replace("_", " ")), " ", value)
        for name, value in reads.to_query(where).items()
        if name not in ("sort", "order")
    ]
    return el("ul.filter-told", *said)
