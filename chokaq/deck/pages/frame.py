"""The frame around every page: name, navigation, who looks, how fresh the data is."""

from chokaq.deck.desk import Desk
from chokaq.deck.live import State
from chokaq.deck.pages.nodes import Node, el, link, when
from chokaq.deck.users import User

PAGES = (
    ("overview", "/", "Overview"),
    ("queues", "/queues", "Queues"),
    ("jobs", "/jobs", "Jobs"),
    ("workers", "/workers", "Workers"),
    ("circuits", "/circuits", "Circuits"),
    ("audit", "/audit", "Audit"),
    ("settings", "/settings", "Settings"),
)


def top(desk: Desk, user: User, here: str, state: State, path: str = "/") -> list[Node]:
    """The bar on top of every page. `path`: of the page, below that of its desk."""
    entries = [
        link(f"{desk.base}{path}", words, aria_current="page" if name == here else None) for name, path, words in PAGES
    ]
    role = "operator" if user.may_change else "viewer: looks, changes nothing"
    return [
        el("a.skip", "To the content", href="#main"),
        el(
            "header.top",
            el("a.brand", el("span.mark", "≡", aria_hidden="true"), desk.settings.deck.title, href=f"{desk.base}/"),
            el("nav.pages", *entries, aria_label="Pages"),
            el(
                "div.status",
                el("span.badge.danger", "PRODUCTION", title="production: true in chokaq.yaml")
                if desk.settings.production
                else None,
                freshness(state),
                el("span.database", _short(desk.database), title=f"The jobs live in {desk.database}"),
                _databases(desk, path),
                el("span.who", user.name, el("span.faint", " viewer") if not user.may_change else None, title=role),
                el(
                    "button.btn.quiet.theme",
                    "Theme",
                    type="button",
                    data_theme_switch="",
                    title="Light, dark, or as the system says",
                ),
                _leave(desk, user),
            ),
        ),
    ]


def freshness(state: State) -> Node:
    """Whether the data are live."""
    if state.stale_since is None:
        return el("span.fresh", el("i.dot", aria_hidden="true"), "live")
    return el("span.fresh.off", el("i.dot", aria_hidden="true"), "stale")


def banner(state: State) -> list[Node]:
    """What is said while the database is away."""
    if state.stale_since is None:
        return []
    why = f" ({state.problem})" if state.problem else ""
    return [
        el(
            "div.away",
            el("b", "The database does not answer"),
            why,
            ". What you see is from ",
            when(state.stale_since, "clock"),
            ", ",
            when(state.stale_since),
            ". It is asked again every second; the page goes on by itself.",
            role="status",
        )
    ]


def _databases(desk: Desk, path: str) -> Node:
    """Of several databases the one that is shown, and the way to the same page of the others."""
    if not desk.settings.several:
        return None
    entries = [
        link(
            f"{one.base}{path}",
            one.name,
            aria_current="true" if one is desk else None,
            title=f"What you see is the database {one.name} alone ({one.database})" if one is desk else one.database,
        )
        for one in desk.desks
    ]
    missing = desk.left_out
    if missing:
        told = f"Not shown by this Deck: {', '.join(missing)}"
        entries.append(el("span.faint", f"1 of {len(missing) + len(desk.desks)}", title=told))
    return el("nav.databases", el("span.faint", "database"), *entries, aria_label="Databases")


def _leave(desk: Desk, user: User) -> Node:
    if user.until is None:
        return None
    return el("form", el("button.btn.quiet", "Sign out", type="submit"), method="post", action=f"{desk.root}/logout")


def _short(database: str) -> str:
    """Of a file its name alone; of a server all that is not secret."""
    return database.rpartition("/")[2] if database.startswith("sqlite:") else database
