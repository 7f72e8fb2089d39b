"""Logs, and what keeps secrets out of them."""

from chokaq.observe.log import configure_logging, event_number, tell_repeats
from chokaq.observe.redact import redact, redact_text
from chokaq.observe.running import job_fields

__all__ = ["configure_logging", "event_number", "job_fields", "redact", "redact_text", "tell_repeats"]
