"""Trees of what a page shows, as plain data: `el("td.num", "12", title="…")`. The browser changes only what differs.

A node is text or `[name, attributes, children]`. Text is always text, never markup. Attributes that the browser's side (see
static/chokaq_fragment.js) gives a meaning: `act` (what to tell the page when it is clicked, changed or submitted), `value` (sent
with it), `initial` (an input's first value), `live` (tell every keystroke), `key` (identity within a list).
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias, cast

Node: TypeAlias = "str | list[object] | None"
NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
Child: TypeAlias = "Node | int | Iterable[Node]"


def el(kind: str, *children: Child, **attributes: object) -> list[object]:
    """An element; `kind` is a tag with classes: `div.card.wide`. `class_` and `aria_label` become `class` and `aria-label`.

    Attributes that are None or False are left out, as are children that are None.
    """
    name, *classes = kind.split(".")
    named = {
        key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value not in (None, False)
    }
    if classes:
        more = named.get("class")
        named["class"] = " ".join([*classes, str(more)] if more else classes)
    return [name or "div", named, list(_flat(children))]


def _flat(children: Iterable[Child]) -> Iterable[Node]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, int):
            yield f"{child:,}"
        elif isinstance(child, str) or (isinstance(child, list) and _is_node(child)):
            yield child
        else:
            yield from _flat(cast("Iterable[Child]", child))


def _is_node(child: list[object]) -> bool:
    return len(child) == 3 and isinstance(child[0], str) and isinstance(child[1], dict)


def dash() -> list[object]:
    """Says that there is no value."""
    return el("span.faint", NOTHING)


def when(instant: datetime | None, style: str = "ago", missing: str = NOTHING) -> Node:
    """An instant in the viewer's zone, UTC on hover. `style`: `ago` (2 min ago), `age` (2 min), `clock` (14:03:22), `full`."""
    if instant is None:
        return el("span.faint", missing)
    return ["when", {"ms": round(instant.timestamp() * 1000), "mode": style}, []]


def link(address: str, /, *children: Child, **attributes: object) -> list[object]:
    """A link to an address with The Deck's base."""
    return el("a", *children, href=address, **attributes)


def button(act: str, *children: Child, kind: str = "", **attributes: object) -> list[object]:
    """A button that tells the page `act`. `kind`: `primary`, `danger`, `quiet` or nothing."""
    return el(f"button.btn{'.' + kind if kind else ''}", *children, type="button", act=act, **attributes)
