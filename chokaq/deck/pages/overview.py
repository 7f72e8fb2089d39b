"""The first page: how much, how fast, how well, and what is wrong."""

from chokaq.deck import reads
from chokaq.deck.pages import words
from chokaq.deck.pages.charts import ChartRow
from chokaq.deck.pages.nodes import Node, el, link, when
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import card, head, table, td, th
from chokaq.deck.shown import Counted, ErrorFamily, HealthLine, Overview, Search
from chokaq.deck.topics import OVERVIEW
from chokaq.lifecycle.states import JobStatus, Pillar


async def overview_page(screen: Screen, span: str) -> None:
    """Build it. `span`: `hour` or `day`, of the charts."""
    screen.heading("Overview")
    figures = screen.part(screen.desk.reads.overview, lambda seen: [*_tiles(screen, seen), *_judged(screen, seen)])
    charts = ChartRow(screen, "day" if span == "day" else "hour")
    await screen.open(figures)
    await charts.refresh()
    screen.listen(OVERVIEW, figures, told=charts.refresh)


def _jobs(screen: Screen, where: Search) -> str:
    return screen.url("/jobs", reads.to_query(where))


def _tiles(screen: Screen, seen: Overview) -> list[Node]:
    def waiting(name: str, count: Counted, status: JobStatus | None, hint: str) -> Node:
        target = _jobs(screen, Search(pillar=Pillar.HOT, status=status))
        return _tile(
            name,
            _count(count),
            f"counted {words.duration(count.age_ms)} ago" if count.age_ms >= 1_000 else hint,
            target=target,
        )

    lag = words.duration(seen.oldest_due_ms, "none")
    running = seen.processing.value
    use = f"of {seen.capacity:,} possible" if seen.capacity else "no live worker"
    ended = screen.url("/jobs", reads.to_query(Search(pillar=Pillar.DLQ, sort="ended")))
    done = screen.url("/jobs", reads.to_query(Search(pillar=Pillar.ARCHIVE, sort="ended")))
    return [
        el(
            "div.tiles",
            waiting("Pending", seen.pending, JobStatus.PENDING, "due and waiting"),
            waiting("Scheduled", seen.scheduled, JobStatus.PENDING, "for later"),
            waiting("Buffered", seen.fetched, JobStatus.FETCHED, "fetched"),
            _tile(
                "Processing",
                _count(seen.processing),
                use,
                target=_jobs(screen, Search(pillar=Pillar.HOT, status=JobStatus.PROCESSING)),
                meter=running / seen.capacity if seen.capacity else None,
            ),
            _tile("Lag", lag, "oldest due", tone=seen.lag, target=screen.url("/queues")),
            _tile(
                "Throughput", f"{words.rate(seen.per_second_1m)} /s", f"{words.rate(seen.per_second_5m)} /s over 5 min"
            ),
            _tile(
                "Failure rate", words.percent(seen.failure_rate_5m), "over 5 min", tone=_rate_tone(seen.failure_rate_5m)
            ),
            _tile(
                "Succeeded", words.short(seen.succeeded_total), "ever", target=done, title=f"{seen.succeeded_total:,}"
            ),
            _tile(
                "Stopped",
                words.short(seen.failed_total),
                "ever",
                target=ended,
                title=f"{seen.failed_total:,} stopped, {seen.retried_total:,} retried",
            ),
        )
    ]


def _rate_tone(share: float | None) -> str:
    if share is None or share < 0.01:
        return "ok"
    return "warning" if share < 0.1 else "critical"


def _count(count: Counted) -> Node:
    more = "+" if count.more else ""
    return el("span", f"{words.short(count.value)}{more}", title=f"{count.value:,}{more}")


def _tile(
    name: str,
    value: Node,
    hint: str,
    *,
    tone: str = "ok",
    target: str | None = None,
    meter: float | None = None,
    title: str = "",
) -> Node:
    inside: list[Node] = [el("span.name", name), el(f"span.value.{tone}", value, title=title or None)]
    if tone != "ok":
        hint = f"{'high' if tone == 'warning' else 'very high'} · {hint}"
    inside.append(el("span.hint", hint))
    if meter is not None:
        inside.append(el("span.meter", el("i", style=f"width:{min(meter, 1) * 100:.0f}%"), aria_hidden="true"))
    return el("a.tile", *inside, href=target) if target else el("div.tile", *inside)


def _judged(screen: Screen, seen: Overview) -> list[Node]:
    lines = [_health(screen, line, at) for at, line in enumerate(sorted(seen.health, key=_gravity))]
    health = card("Health", el("ul.health", lines))
    if not seen.families:
        errors = card("Top errors", el("p.empty-line", "No stopped jobs in the DLQ."))
    else:
        rows = [_family(screen, family) for family in seen.families]
        errors = card(
            "Top errors",
            table(head(th("Jobs", kind="num"), "Error", "Latest message", "Newest"), rows, "tight"),
            beside=[link(_jobs(screen, Search(pillar=Pillar.DLQ, sort="ended")), "All of the DLQ")],
        )
    return [el("div.two", health, errors)]


def _gravity(line: HealthLine) -> int:
    return ("critical", "warning", "ok").index(line.health)


def _health(screen: Screen, line: HealthLine, at: int) -> Node:
    page = {"workers": "/workers", "queues": "/queues", "circuits": "/circuits"}.get(line.what)
    name = line.what.capitalize()
    return el(
        "li",
        el(f"i.light.{line.health}", role="img", aria_label=line.health),
        link(screen.url(page), name, class_="strong") if page else el("b", name),
        el("span", *words.marked(line.sentence)),
        key=f"{line.what}{at}",
    )


def _family(screen: Screen, family: ErrorFamily) -> Node:
    where = Search(pillar=Pillar.DLQ, reason=family.reason, error_type=family.error_type, sort="ended")
    name = words.error_name(family.error_type) or family.reason.label
    return el(
        "tr",
        td("Jobs", family.count, kind="num"),
        td(
            "Error",
            link(_jobs(screen, where), name, class_="strong", title=family.error_type),
            words.reason(family.reason),
            kind="nowrap",
        ),
        td(
            "Latest message",
            words.cut(family.message, 120) or el("span.faint", "no message"),
            kind="clip",
            title=family.message,
        ),
        td("Newest", when(family.latest), kind="nowrap"),
        key=f"{family.reason}:{family.error_type}",
    )
