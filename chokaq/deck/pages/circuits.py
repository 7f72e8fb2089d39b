"""The circuit breakers of all job types over the fleet, and orders to them."""

from functools import partial

from nicegui import ui

from chokaq.deck.pages.circuit_history import CircuitHistoryPart
from chokaq.deck.pages.dialogs import Question, Values
from chokaq.deck.pages.nodes import Node, button, dash, el, link, when
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td, th
from chokaq.deck.pages.words import duration
from chokaq.deck.topics import CIRCUITS
from chokaq.lifecycle.circuit import CircuitState
from chokaq.operations.circuits import CircuitStatus

_LOOKS = {
    CircuitState.OPEN: ("bad", "open"),
    CircuitState.HALF_OPEN: ("warn", "being tried"),
    CircuitState.CLOSED: ("good", "closed"),
}
_ORDERS = {
    "open": ("Force open", "Its jobs wait, on every worker, until this order is cleared. Running jobs go on."),
    "closed": ("Force closed", "Its jobs run, whatever fails, on every worker, until this order is cleared."),
    "clear": ("Clear the order", "The circuits follow their own rule again, beginning closed."),
}


class CircuitsPage:
    """One line per job type, and the history of one of them."""

    def __init__(self, screen: Screen, query: dict[str, str]) -> None:
        """`query`: the parameters of the address; `type` names the one whose history is shown."""
        self._screen = screen
        screen.heading(
            "Circuits",
            button("force", "Force a type…", value="") if screen.user.may_change else None,
            _seek(query.get("type", "")),
        )
        self.part = screen.part(screen.desk.reads.circuits, self._draw)
        self.history = CircuitHistoryPart(screen, query) if query.get("type", "").strip() else None
        screen.on("history", self._show_history)
        screen.on("force", self._force)
        for order in _ORDERS:
            screen.on(f"force-{order}", partial(self._ask, order))

    async def open(self) -> None:
        """Read, then listen."""
        if self.history is None:
            await self._screen.open(self.part)
            self._screen.listen(CIRCUITS, self.part)
            return
        await self._screen.open(self.part, self.history.part)
        await self.history.refresh()
        self._screen.listen(CIRCUITS, self.part, self.history.part, told=self.history.refresh)

    def _show_history(self, value: object) -> None:
        type_key = str(value.get("type") or "").strip() if isinstance(value, dict) else ""
        with self._screen.overlay:
            ui.navigate.to(self._screen.url("/circuits", {"type": type_key} if type_key else None))

    def _draw(self, circuits: list[CircuitStatus]) -> list[Node]:
        if not circuits:
            return [
                empty(
                    "All circuits are closed.",
                    "A job type appears here after its first failure in a row, or when somebody orders its circuit open or closed.",
                )
            ]
        headings = head(
            "Job type",
            "State",
            th("Failures in a row", kind="num"),
            "Workers",
            "Last error",
            "Next try",
            "Changed",
            "Order",
            th("Actions" if self._screen.user.may_change else "", kind="actions"),
        )
        return [table(headings, [self._row(circuit) for circuit in circuits], "rows", "Circuits")]

    def _row(self, circuit: CircuitStatus) -> Node:
        tone, word = _LOOKS[circuit.state]
        order = circuit.order
        return el(
            "tr",
            td(
                "Job type",
                el("b", circuit.type_key),
                link(self._screen.url("/circuits", {"type": circuit.type_key}), "history", class_="small block"),
                kind="wide",
            ),
            td("State", el(f"span.badge.{tone}", word), kind="nowrap"),
            td("Failures in a row", circuit.failures, kind="num"),
            td("Workers", self._reports(circuit)),
            td("Last error", circuit.last_error or dash()),
            td("Next try", _probe(circuit), kind="nowrap"),
            td("Changed", when(circuit.changed_at), kind="nowrap"),
            td(
                "Order",
                el(
                    "span",
                    el("span.badge.warn", f"forced {order.forced.name.lower()}"),
                    el(
                        "small.faint.block",
                        "by ",
                        order.actor,
                        " ",
                        when(order.at),
                        f": {order.reason}" if order.reason else "",
                    ),
                )
                if order
                else el("span.faint", "none: by its own rule"),
            ),
            td("Actions", *self._buttons(circuit), kind="actions"),
            key=circuit.type_key,
        )

    def _reports(self, circuit: CircuitStatus) -> Node:
        told = f"{circuit.open:,} open, {circuit.half_open:,} trying, of {circuit.workers:,}"
        if not circuit.reports:
            return el("span.faint", "none has met a failure")
        lines = [
            el(
                "li",
                el("span.id", view.worker_id),
                f" {view.host}, {view.queue}: {_LOOKS[view.state][1]}, {view.failures:,} in a row, ",
                when(view.changed_at),
                key=view.worker_id,
            )
            for view in circuit.reports
        ]
        return el("details", el("summary", told), el("ul.plain", *lines))

    def _buttons(self, circuit: CircuitStatus) -> list[Node]:
        if not self._screen.user.may_change:
            return []
        orders = ["clear"] if circuit.order else ["open", "closed"]
        return [
            button(
                f"force-{order}",
                f"{_ORDERS[order][0]}…",
                value=circuit.type_key,
                kind="small",
                aria_label=f"{_ORDERS[order][0]}: {circuit.type_key}",
            )
            for order in orders
        ]

    def _ask(self, order: str, value: object) -> None:
        type_key = str(value)

        async def run(values: Values) -> str:
            await self._screen.desk.actions.force_circuit(self._screen.user, type_key, order, values["reason"])
            await self.part.refresh()
            return f"Ordered; the workers follow within a second: {type_key}."

        words, told = _ORDERS[order]
        Question(self._screen, f"{words}: {type_key}?", run, body=[el("p", told)], verb=words, danger=order == "open")

    def _force(self, _: object) -> None:
        async def run(values: Values) -> str:
            await self._screen.desk.actions.force_circuit(
                self._screen.user, values["type_key"].strip(), values["order"], values["reason"]
            )
            await self.part.refresh()
            return "Ordered; the workers follow within a second."

        orders = [el("option", words, value=name) for name, (words, _) in _ORDERS.items()]
        fields = [
            el(
                "label.field",
                el("span", "Job type"),
                el("input", name="type_key", required=True, spellcheck="false", focus=True),
            ),
            el("label.field", el("span", "Order"), el("select", *orders, name="order", initial="open")),
        ]
        Question(self._screen, "Order the circuits of a job type", run, fields=fields, verb="Order")


def _seek(type_key: str) -> Node:
    """The field that asks for the history of a type, also of one whose circuits are all closed."""
    return el(
        "form.inline",
        el(
            "input",
            name="type",
            initial=type_key,
            placeholder="History of a job type   /",
            aria_label="History of a job type",
            spellcheck="false",
            data_search="",
        ),
        el("button.btn", "Show", type="submit"),
        act="history",
        role="search",
    )


def _probe(circuit: CircuitStatus) -> Node:
    if circuit.next_probe_ms is None:
        return dash()
    return el("span", "at its next job" if circuit.next_probe_ms == 0 else f"in {duration(circuit.next_probe_ms)}")
