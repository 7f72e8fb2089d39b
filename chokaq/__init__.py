"""Durable background jobs for Python applications on Microsoft SQL Server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chokaq.app import ChokaQ
    from chokaq.jobs.context import JobContext
    from chokaq.jobs.enqueue import Enqueue
    from chokaq.jobs.envelope import Window
    from chokaq.jobs.errors import EnqueueError, JobNotFound, PayloadTooLarge, RegistrationError, UnknownJobType
    from chokaq.jobs.idempotency import idempotent
    from chokaq.jobs.profile import Profile
    from chokaq.lifecycle.errors import FatalError, PayloadError, Snooze, Throttled
    from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus, KeyScope
    from chokaq.store.errors import StoreError, StoreUnavailable
    from chokaq.store.records import CancelAnswer, Enqueued, JobView

    __version__: str

__all__ = [
    "CancelAnswer",
    "CancelReason",
    "ChokaQ",
    "Enqueue",
    "EnqueueError",
    "Enqueued",
    "FailureReason",
    "FatalError",
    "JobContext",
    "JobNotFound",
    "JobStatus",
    "JobView",
    "KeyScope",
    "PayloadError",
    "PayloadTooLarge",
    "Profile",
    "RegistrationError",
    "Snooze",
    "StoreError",
    "StoreUnavailable",
    "Throttled",
    "UnknownJobType",
    "Window",
    "__version__",
    "idempotent",
]

_HOMES = {
    "app": ("ChokaQ",),
    "jobs.context": ("JobContext",),
    "jobs.enqueue": ("Enqueue",),
    "jobs.envelope": ("Window",),
    "jobs.errors": ("EnqueueError", "JobNotFound", "PayloadTooLarge", "RegistrationError", "UnknownJobType"),
    "jobs.idempotency": ("idempotent",),
    "jobs.profile": ("Profile",),
    "lifecycle.errors": ("FatalError", "PayloadError", "Snooze", "Throttled"),
    "lifecycle.states": ("CancelReason", "FailureReason", "JobStatus", "KeyScope"),
    "store.errors": ("StoreError", "StoreUnavailable"),
    "store.records": ("CancelAnswer", "Enqueued", "JobView"),
}
"""Where each name is defined. A name is imported when it is first used: every command imports this package, few need all of it."""


if not TYPE_CHECKING:  # seen by a type checker, it would make every misspelt name a known one

    def __getattr__(name: str) -> object:
        found: object
        if name == "__version__":
            found = _version()
        else:
            from importlib import import_module

            for home, names in _HOMES.items():
                if name in names:
                    found = getattr(import_module(f"chokaq.{home}"), name)
                    break
            else:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("chokaq")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0.0.0"
