"""Tables that become lists of cards on a phone."""

from collections.abc import Iterable, Sequence

from chokaq.deck.pages.nodes import Child, Node, el


def head(*cells: Child) -> Node:
    """The heading row. A cell is text, or `th(…)`."""
    return el("thead", el("tr", *(cell if isinstance(cell, list) else th(str(cell)) for cell in cells)))


def th(text: str, *children: Child, kind: str = "", **attributes: object) -> list[object]:
    """A heading; `kind`: classes such as `num`."""
    return el(f"th{'.' + kind if kind else ''}", text, *children, scope="col", **attributes)


def td(label: str, *children: Child, kind: str = "", **attributes: object) -> list[object]:
    """A cell; `label` names it where the headings are not shown."""
    return el(f"td{'.' + kind if kind else ''}", *children, data_label=label, **attributes)


def table(headings: Node, rows: Iterable[Node], kind: str = "", caption: str = "") -> Node:
    """A table that scrolls sideways in itself when it must."""
    body = el("tbody", list(rows))
    told = el("caption", caption) if caption else None
    return el(
        "div.scroller",
        el(f"table{'.' + kind if kind else ''}", told, headings, body),
        tabindex="0",
        role="region",
        aria_label=caption or None,
    )


def facts(pairs: Sequence[tuple[str, Child]]) -> Node:
    """Names and values, one below the other."""
    return el("dl.facts", *(el("div", el("dt", name), el("dd", value), key=name) for name, value in pairs))


def card(title: str, *children: Child, beside: Sequence[Node] = (), kind: str = "") -> Node:
    """A titled box."""
    return el(
        f"section.card{'.' + kind if kind else ''}",
        el("div.card-head", el("h2", title), *beside),
        *children,
        aria_label=title,
    )
