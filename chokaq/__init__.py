"""Durable background jobs for Python applications on Microsoft SQL Server."""

from importlib.metadata import PackageNotFoundError, version

from chokaq.app import ChokaQ
from chokaq.jobs.context import JobContext
from chokaq.jobs.enqueue import Enqueue
from chokaq.jobs.envelope import Window
from chokaq.jobs.errors import EnqueueError, JobNotFound, PayloadTooLarge, RegistrationError, UnknownJobType
from chokaq.jobs.profile import Profile
from chokaq.lifecycle.errors import FatalError, PayloadError, Snooze, Throttled
from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus, KeyScope
from chokaq.store.errors import StoreError, StoreUnavailable
from chokaq.store.records import CancelAnswer, Enqueued, JobView

try:
    __version__ = version("chokaq")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"

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
]
