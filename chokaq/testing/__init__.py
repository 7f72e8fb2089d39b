"""Helpers for an application's own tests: run one handler without a store, or run what was enqueued on a temporary one."""

from chokaq.testing.inbox import Drained, Inbox
from chokaq.testing.run import run_job, run_job_sync

__all__ = ["Drained", "Inbox", "run_job", "run_job_sync"]
