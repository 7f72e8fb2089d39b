"""The audit log: who did what, when, to what, why; filtered, page by page, and as a file."""

import csv
import io

import orjson
from nicegui import ui

from chokaq.deck import topics
from chokaq.deck.access import Refusal
from chokaq.deck.pages import words
from chokaq.deck.pages.nodes import Node, button, dash, el, link, when
from chokaq.deck.pages.pager import Pager, older_button
from chokaq.deck.pages.part import empty
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import head, table, td
from chokaq.deck.shown import AuditLine, AuditPage

PAGE = 50
MAX_EXPORT = 10_000
_ULID_LENGTH = 26
_FILTERS = (("target", "Job, queue, worker or type"), ("actor", "Who"), ("action", "Action"))


class AuditScreen:
    """The newest first."""

    def __init__(self, screen: Screen, query: dict[str, str]) -> None:
        """`query`: the parameters of the address: target, actor, action, after."""
        self._screen = screen
        self._where = {name: query[name] for name, _ in _FILTERS if query.get(name)}
        self._pager = Pager(query.get("after"))
        screen.heading("Audit", button("export", "Export as CSV"))
        self._bar = screen.place()
        self.part = screen.part(self._read, self._draw)
        self._parts = [self.part]
        if screen.user.may_change:
            self._parts.append(screen.part(screen.desk.reads.refusals, _refusals))
        for act, handler in (
            ("filter", self._filter),
            ("clear", self._filter),
            ("older", self._older),
            ("newer", self._newer),
            ("export", self._export),
        ):
            screen.on(act, handler)
        self._draw_bar()

    async def open(self) -> None:
        """Read, then listen."""
        await self._screen.open(*self._parts)
        self._screen.listen(topics.AUDIT, *self._parts)

    async def _read(self) -> AuditPage:
        where = self._where
        return await self._screen.desk.reads.audit(
            target=where.get("target"),
            actor=where.get("actor"),
            action=where.get("action"),
            limit=PAGE,
            after=self._pager.after,
        )

    def _draw_bar(self) -> None:
        fields = [
            el(
                "input",
                name=name,
                initial=self._where.get(name, ""),
                placeholder=text,
                aria_label=text,
                spellcheck="false",
                class_="set" if name in self._where else None,
            )
            for name, text in _FILTERS
        ]
        clear = button("clear", "Clear", kind="quiet") if self._where else None
        self._bar.show(
            el(
                "div.filters",
                el(
                    "form.fields",
                    *fields,
                    el("button.btn", "Search", type="submit"),
                    clear,
                    act="filter",
                    role="search",
                ),
            )
        )

    def _draw(self, page: AuditPage) -> list[Node]:
        if not page.entries and page.after is None and not self._pager.turned:
            return [
                empty(
                    "No entry fits." if self._where else "Nobody has changed anything yet.",
                    ""
                    if self._where
                    else "What operators do through The Deck, its API or the command line is written here.",
                )
            ]
        rows = [self._row(line) for line in page.entries]
        return [
            table(head("When", "Who", "What", "Of what", "Why", "Before and after"), rows, "rows", "Audit log"),
            el(
                "div.pager",
                self._pager.newer_button(),
                el("span", f"{len(page.entries):,} entries"),
                older_button(page.after),
                el("span.note-line", "2,000 entries were looked at; older ones may fit, too.")
                if page.partial
                else None,
            ),
        ]

    def _row(self, line: AuditLine) -> Node:
        target: Node = el("span", line.target)
        if len(line.target) == _ULID_LENGTH and line.target.isalnum():
            target = link(self._screen.job_url(line.target), line.target, class_="id")
        changed = (
            el(
                "details",
                el("summary", words.cut(difference(line.before, line.after), 80)),
                _state("before", line.before),
                _state("after", line.after),
            )
            if line.before or line.after
            else dash()
        )
        return el(
            "tr",
            td("When", when(line.at, "clock"), el("small.faint.block", when(line.at)), kind="nowrap"),
            td("Who", el("b", line.actor)),
            td("What", line.action),
            td("Of what", target, kind="wide"),
            td("Why", line.reason or dash()),
            td("Before and after", changed),
            key=line.id,
        )

    async def _go(self) -> None:
        query = self._where | ({"after": self._pager.after} if self._pager.after else {})
        with self._screen.overlay:
            ui.navigate.history.push(self._screen.url("/audit", query))
        self._draw_bar()
        await self.part.refresh()

    async def _filter(self, value: object) -> None:
        values = value if isinstance(value, dict) else {}
        self._where = {name: text for name, _ in _FILTERS if (text := str(values.get(name) or "").strip())}
        self._pager.first()
        await self._go()

    async def _older(self, _: object) -> None:
        if isinstance(self.part.data, AuditPage) and self._pager.older(self.part.data.after):
            await self._go()

    async def _newer(self, _: object) -> None:
        if self._pager.newer():
            await self._go()

    async def _export(self, _: object) -> None:
        lines: list[AuditLine] = []
        after: str | None = None
        while len(lines) < MAX_EXPORT:
            where = self._where
            page = await self._screen.desk.reads.audit(
                target=where.get("target"), actor=where.get("actor"), action=where.get("action"), limit=200, after=after
            )
            lines += page.entries
            after = page.after
            if after is None:
                break
        with self._screen.overlay:
            ui.download.content(as_csv(lines), "chokaq-audit.csv")
        rest = f" There are older ones: it holds the newest {MAX_EXPORT:,}." if after is not None else ""
        self._screen.tell(f"{len(lines):,} entries written.{rest}")


def difference(before: str | None, after: str | None) -> str:
    """What a change changed, in short: `paused: false → true`."""
    was, now = _fields(before), _fields(after)
    if was is None or now is None:
        return after or before or ""
    changed = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    return (
        ", ".join(f"{name}: {_said(was.get(name))} → {_said(now.get(name))}" for name in changed)
        or after
        or before
        or ""
    )


def _fields(text: str | None) -> dict[str, object] | None:
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _said(value: object) -> str:
    return "none" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode()


def _refusals(refusals: list[Refusal]) -> list[Node]:
    """Whom this process of The Deck did not let in, or did not let change something."""
    title = el(
        "div.head.sub", el("h2", "Refused"), el("span.faint", "by this process since it started, the newest 200")
    )
    if not refusals:
        return [title, el("p.empty-line", "Nobody was refused anything.")]
    rows = [
        el(
            "tr",
            td("When", when(refused.at, "clock"), " ", el("small.faint", when(refused.at)), kind="nowrap"),
            td("Who", refused.who or el("span.faint", "unknown")),
            td("From", refused.address or dash(), kind="nowrap"),
            td("What", el("code", refused.what)),
            td("Why", refused.why),
            key=f"{refused.at.timestamp()}:{at}",
        )
        for at, refused in enumerate(refusals)
    ]
    return [title, table(head("When", "Who", "From", "What", "Why"), rows, "rows", "Refused")]


def as_csv(lines: list[AuditLine]) -> str:
    """The entries as CSV with a heading; times in UTC. What a spreadsheet would take for a formula is quoted with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("id", "at_utc", "actor", "action", "target", "reason", "before", "after"))
    for line in lines:
        texts = (line.actor, line.action, line.target, line.reason, line.before, line.after)
        writer.writerow((line.id, line.at.isoformat(), *(_harmless(text or "") for text in texts)))
    return out.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _state(name: str, text: str | None) -> Node:
    return el("div", el("span.faint", name), el("pre.code", text)) if text else None
