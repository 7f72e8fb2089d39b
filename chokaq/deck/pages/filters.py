"""The filter over a list of jobs, as fields; and the filter that its values mean."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from chokaq.deck.pages.nodes import Node, button, el
from chokaq.deck.shown import Search
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar

_TABS = ((None, "All"), (Pillar.HOT, "Hot"), (Pillar.ARCHIVE, "Archive"), (Pillar.DLQ, "DLQ"))
_STATUSES = {
    None: list(JobStatus),
    Pillar.HOT: [JobStatus.PENDING, JobStatus.FETCHED, JobStatus.PROCESSING],
    Pillar.ARCHIVE: [JobStatus.SUCCEEDED],
    Pillar.DLQ: [JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE, JobStatus.DROPPED],
}


def bar(where: Search, queues: Sequence[str]) -> list[Node]:
    """Tabs and fields; every field takes effect when it is left or Enter is pressed."""
    tabs = [
        button(
            "pillar",
            words,
            value=pillar.value if pillar else "",
            aria_pressed="true" if where.pillar == pillar else "false",
        )
        for pillar, words in _TABS
    ]
    known = sorted({*queues, *([where.queue] if where.queue else [])})
    statuses = _STATUSES[where.pillar]
    fields: list[Node] = [
        el(
            "input.search",
            name="text",
            type="search",
            initial=where.text or "",
            placeholder="Search id, type, tags, error   /",
            aria_label="Search",
            data_search="",
            maxlength="1000",
        ),
        _choice("queue", "Queue", [(name, name) for name in known], where.queue),
        _choice(
            "status",
            "Status",
            [(state.label.lower(), state.label) for state in statuses],
            where.status.label.lower() if where.status is not None else None,
        )
        if len(statuses) > 1
        else None,
        _text("type_key", "Type", where.type_key),
        el("label.check.more-switch", el("input", type="checkbox"), " more filters"),
        _text("tag", "Tag", where.tag),
    ]
    if where.pillar in (Pillar.DLQ, None):
        fields.append(
            _choice(
                "reason",
                "Reason",
                [(reason.label, reason.label) for reason in FailureReason],
                where.reason.label if where.reason is not None else None,
            )
        )
    if where.pillar is Pillar.DLQ or where.error_type:
        fields.append(_text("error_type", "Error type", where.error_type))
    if where.pillar in (Pillar.DLQ, Pillar.ARCHIVE):
        fields += [
            _instant("stopped_from", "Ended from", where.stopped_from),
            _instant("stopped_until", "until", where.stopped_until),
        ]
    fields.append(el("button.btn", "Search", type="submit"))
    if _filtered(where):
        fields.append(button("clear", "Clear", kind="quiet"))
    return [
        el(
            "div.head",
            el("h1", "Jobs"),
            el("div.segments", *tabs, role="group", aria_label="Pillar"),
        ),
        el(
            "form.fields.filters",
            *fields,
            act="filter",
            role="search",
            key=where.pillar.value if where.pillar else "all",
        ),
    ]


def changed(where: Search, values: Mapping[str, Any]) -> Search:
    """The filter after these fields were filled in; what another pillar does not know is left out."""
    if set(values) == {"pillar"}:
        pillar = Pillar(values["pillar"]) if values["pillar"] else None
        return Search(pillar=pillar, queue=where.queue, type_key=where.type_key, tag=where.tag, text=where.text)
    named = {state.label.lower(): state for state in JobStatus}
    reasons = {reason.label: reason for reason in FailureReason}
    fresh: dict[str, Any] = {
        name: str(values[name]).strip() or None
        for name in ("text", "queue", "type_key", "tag", "error_type")
        if name in values
    }
    if "status" in values:
        fresh["status"] = named.get(str(values["status"]))
    if "reason" in values:
        fresh["reason"] = reasons.get(str(values["reason"]))
    for name in ("stopped_from", "stopped_until"):
        if name in values:
            fresh[name] = None if values[name] is None else datetime.fromtimestamp(float(values[name]) / 1_000, UTC)
    return replace(where, **fresh)


def _filtered(where: Search) -> bool:
    return replace(where, sort="created", descending=True) != Search(pillar=where.pillar)


def _choice(name: str, words: str, options: Sequence[tuple[str, str]], now: str | None) -> Node:
    return el(
        "select",
        el("option", f"{words}: any", value=""),
        *(el("option", text, value=value) for value, text in options),
        name=name,
        initial=now or "",
        aria_label=words,
        class_="set" if now else None,
        data_submit="",
    )


def _text(name: str, words: str, now: str | None) -> Node:
    return el(
        "input",
        name=name,
        initial=now or "",
        placeholder=words,
        aria_label=words,
        class_="set" if now else "more",
        spellcheck="false",
    )


def _instant(name: str, words: str, now: datetime | None) -> Node:
    ms = "" if now is None else round(now.timestamp() * 1_000)
    return el(
        "label.inline" if now else "label.inline.more",
        words,
        " ",
        el("input", name=name, type="datetime-local", initial=ms, class_="set" if now else None),
    )
