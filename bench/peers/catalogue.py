"""Which systems are compared, what they need, and which table of PostgreSQL or Redis stands behind them."""

from typing import NamedTuple


class Peer(NamedTuple):
    """One system."""

    name: str
    """On the command line; also its database."""
    label: str
    module: str
    """In bench.peers."""
    requirements: tuple[str, ...]
    """Of its own environment; empty: chokaq, which runs in ours."""
    service: str | None = None
    """`postgres` or `redis`, which the bench starts; `tsql`: a server that is there; None: a file."""
    python: tuple[int, int] = (3, 11)
    """At least."""


PEERS = (
    Peer("chokaq-sqlite", "chokaq (SQLite)", "ourselves", ()),
    Peer("chokaq-sqlserver", "chokaq (T-SQL)", "ourselves", (), "tsql"),
    # Its own command line does not start under newer versions of typer.
    Peer("pgqueuer", "pgqueuer (PostgreSQL)", "pgqueuer", ("pgqueuer==1.6.0", "asyncpg==0.32.0", "typer==0.21.1"), "postgres"),
    Peer("procrastinate", "procrastinate (PostgreSQL)", "procrastinate", ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9"),
         "postgres"),
    Peer("oban", "oban-py (PostgreSQL)", "oban", ("oban==0.7.0",), "postgres", (3, 12)),
    Peer("dramatiq", "dramatiq (Redis)", "dramatiq", ("dramatiq[redis]==2.2.1", "hiredis==3.5.0"), "redis"),
    Peer("taskiq", "taskiq (Redis streams)", "taskiq", ("taskiq==0.13.0", "taskiq-redis==1.2.4"), "redis"),
    Peer("celery", "celery (Redis)", "celery", ("celery[redis]==5.7.0", "redis==8.1.0", "hiredis==3.5.0"), "redis"),
    Peer("celery-sqlite", "celery (SQLAlchemy, SQLite)", "celery_sqlite", ("celery==5.7.0", "SQLAlchemy==2.1.9")),
    Peer("huey", "huey (SQLite)", "huey", ("huey==3.5.4",)),
)  # fmt: skip
"""The versions are pinned: a comparison names what it compared with."""


def find(names: list[str] | None) -> list[Peer]:
    """The peers of these names, all when none is given. Raises KeyError for one that is not known."""
    known = {peer.name: peer for peer in PEERS}
    return [known[name] for name in names] if names else list(PEERS)
