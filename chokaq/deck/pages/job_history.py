"""What a job carries and what happened to it: payload, headers, attempts, keys, operators, risks."""

from chokaq.deck.pages import words
from chokaq.deck.pages.nodes import Node, el, link, when
from chokaq.deck.pages.screen import Screen
from chokaq.deck.pages.table import card, facts
from chokaq.deck.shown import JobPage
from chokaq.store.claims import ClaimView
from chokaq.store.records import Attempt, AuditEntry


def payload_card(page: JobPage) -> Node:
    """The payload, pretty; cut when it is very long."""
    told = words.size(page.payload_bytes)
    if page.payload_cut:
        told += ", cut: too long to be shown whole or edited here"
    known = (
        "its type is known here: an edit is checked against it"
        if page.type_known
        else "its type is not known here: an edit is checked as JSON only"
    )
    return card(
        "Payload",
        el("pre.code", page.payload, tabindex="0"),
        el("p.faint.small", known),
        beside=[el("span.faint", told)],
    )


def headers_card(page: JobPage) -> Node:
    """The headers, if any."""
    if not page.headers:
        return None
    return card("Headers", facts([(name, el("code.wrap", value)) for name, value in page.headers.items()]))


def risks_card(page: JobPage) -> Node:
    """What a resurrection would risk."""
    if not page.risks:
        return card("What resurrection would risk", el("p.empty-line", "Nothing that is known."))
    return card("What resurrection would risk", el("ul.risks", *(el("li", risk) for risk in page.risks)))


def attempts_card(screen: Screen, page: JobPage) -> Node:
    """The failed attempts, the newest first, each with its error and trace."""
    attempts = page.detail.attempts
    if not attempts:
        return card("Failed attempts", el("p.empty-line", "No attempt has failed."))
    newest_first = sorted(attempts, key=lambda attempt: (attempt.at, attempt.lease), reverse=True)
    lines = [_attempt(attempt, len(attempts) - at, latest=at == 0) for at, attempt in enumerate(newest_first)]
    return card("Failed attempts", el("ol.timeline", *lines), beside=[el("span.faint", f"{len(attempts):,}")])


def _attempt(attempt: Attempt, number: int, *, latest: bool) -> Node:
    error = attempt.error
    trace = (
        el("details", el("summary", "Trace"), el("pre.code.trace", error.trace, tabindex="0"), open=latest)
        if error.trace
        else None
    )
    owner = el("span.faint", " · worker ", el("span.id", attempt.worker_id)) if attempt.worker_id else None
    return el(
        "li",
        el(
            "div.when",
            el("b", f"#{number}"),
            " ",
            when(attempt.at, "full"),
            " ",
            el("span.faint", "(", when(attempt.at), ")"),
            owner,
            el("span.faint", f" · lease {attempt.lease:,}"),
        ),
        el("div.what", words.reason(attempt.reason), " ", el("b", error.type)),
        el("pre.wrap", error.message),
        trace,
        key=f"{attempt.lease}:{attempt.at.timestamp()}",
    )


def claims_card(page: JobPage) -> Node:
    """Idempotency keys that its runs hold or have completed."""
    claims = page.detail.claims
    if not claims:
        return None
    return card("Keys of its runs", el("ul.plain", *(_claim(claim) for claim in claims)))


def _claim(claim: ClaimView) -> Node:
    since = (
        el("span", "done ", when(claim.done_at)) if claim.done_at else el("span", "claimed ", when(claim.claimed_at))
    )
    until = el("span", ", expires ", when(claim.expires_at)) if claim.expires_at else ", never expires"
    kept = el("pre.code", words.cut(claim.result, 2_000)) if claim.result else None
    return el("li", el("code", claim.key), " ", el("span.faint", claim.state, ", ", since, until), kept, key=claim.key)


def audit_card(screen: Screen, page: JobPage) -> Node:
    """What operators did with it."""
    entries = page.detail.audit
    everything = link(screen.url("/audit", {"target": page.detail.job.id}), "All in the audit log")
    if not entries:
        return card("What operators did", el("p.empty-line", "Nobody has touched this job."))
    return card("What operators did", el("ol.timeline", *(_entry(entry) for entry in entries)), beside=[everything])


def _entry(entry: AuditEntry) -> Node:
    return el(
        "li",
        el("div.when", when(entry.at, "full"), " ", el("span.faint", "(", when(entry.at), ")")),
        el("div.what", el("b", entry.actor), " ", entry.action, el("q", entry.reason) if entry.reason else None),
        key=entry.id,
    )
