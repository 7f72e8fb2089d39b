"""What can go wrong between chokaq and its store, sorted by what the caller should do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chokaq.store.records import Enqueued


class StoreError(Exception):
    """Base of every error a store raises. Messages never contain a password."""

    database: str | None = None
    """The name of the database in the configuration, where somebody who knows it has said so."""
    number = ""
    """The database's own number of it, else its SQLSTATE; of SQLite the name of its code. Empty: it told none."""
    accepted: Mapping[str, "Enqueued"] = {}
    """Of an enqueue in several transactions: what was answered to the jobs that were accepted all the same, by their own ids."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or gave up for a passing reason (deadlock victim, timeout, restart): call again.

    Every operation may be repeated with the same arguments; an ambiguous commit is settled by the repeat.
    """


class StoreConflict(StoreUnavailable):
    """A row that the call inserts stands there already: mostly a race that the repeat settles. One that stays for several repeats
    is no race (an id that a manual repair left in two tables), and counts as refused."""


class StoreRefused(StoreError):
    """The store refused the call for a reason that will not pass by itself (a value it cannot hold, missing rights).

    The settler splits the set until the one bad job is alone.
    """


class SchemaMismatch(StoreError):
    """The live schema is missing, older than this program needs, or newer than it knows."""


class StoreMisconfigured(StoreError):
    """The store's URL, driver, login or folder is wrong. The message names the setting and the way out."""


class KeyContention(StoreRefused):
    """A keyed enqueue lost its race ten times, or runs in a snapshot that cannot see the winner: retry the transaction."""
