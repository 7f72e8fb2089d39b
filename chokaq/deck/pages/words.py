"""Figures and states in words: one way of saying each, on every page."""

from chokaq.deck.pages.nodes import NOTHING, Node, el
from chokaq.lifecycle.states import FailureReason, JobStatus

_TONES = {
    JobStatus.PENDING: "wait",
    JobStatus.FETCHED: "wait",
    JobStatus.PROCESSING: "run",
    JobStatus.SUCCEEDED: "good",
    JobStatus.FAILED: "bad",
    JobStatus.CANCELLED: "mute",
    JobStatus.ZOMBIE: "warn",
    JobStatus.DROPPED: "mute",
}


def status(state: JobStatus) -> Node:
    """A state as a badge; its colour is never the only sign."""
    return el(f"span.badge.{_TONES[state]}", state.label)


def reason(why: FailureReason | None) -> Node:
    """A failure reason as a small badge."""
    return None if why is None else el("span.badge.plain", why.label)


def short(count: float) -> str:
    """A count that fits a tile: 999, 12,345, 1.24 M."""
    if count >= 1_000_000_000:
        return f"{count / 1e9:.2f} G"
    if count >= 1_000_000:
        return f"{count / 1e6:.2f} M"
    return f"{count:,.0f}"


def rate(per_second: float) -> str:
    """Jobs per second: 0, 0.05, 3.2, 1,204."""
    if per_second == 0:
        return "0"
    if per_second < 0.095:
        return f"{per_second:.2f}"
    return f"{per_second:.1f}" if per_second < 100 else f"{per_second:,.0f}"


def percent(share: float | None) -> str:
    """A share of one; a dash when there is none."""
    if share is None:
        return NOTHING
    return f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:.0f} %"


def duration(ms: float | None, missing: str = NOTHING) -> str:
    """A duration: 12 ms, 3.4 s, 2 min 5 s, 3 h 10 min, 2 d 4 h."""
    if ms is None:
        return missing
    if ms < 1_000:
        return f"{ms:.0f} ms"
    seconds = ms / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = int(seconds)
    for size, big, small_size, small in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small_size
            return f"{whole // size} {big}{f' {rest} {small}' if rest else ''}"
    return f"{whole} s"


def size(count: int) -> str:
    """Bytes: 312 B, 4.1 KB, 1.2 MB."""
    for limit, unit in ((1_000_000, "MB"), (1_000, "KB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} B"


def jobs(count: int) -> str:
    """`1 job`, `12 jobs`."""
    return "1 job" if count == 1 else f"{count:,} jobs"


def cut(text: str | None, limit: int) -> str:
    """The first line of a text, cut."""
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def error_name(error_type: str | None) -> str | None:
    """The class alone: `SMTPRecipientsRefused` for `shop.mail.SMTPRecipientsRefused`."""
    return None if error_type is None else error_type.rpartition(".")[2] or error_type


def marked(text: str) -> list[Node]:
    """A sentence in which `…` marks what is to be typed."""
    return [el("code", part) if at % 2 else part for at, part in enumerate(text.split("`"))]
