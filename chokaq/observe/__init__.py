"""Logs, and what keeps secrets out of them."""

from chokaq.observe.log import configure_logging
from chokaq.observe.redact import redact, redact_text

__all__ = ["configure_logging", "redact", "redact_text"]
