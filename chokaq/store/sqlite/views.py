"""Rows as the records that people see."""

from chokaq.store.sqlite.clock import from_ms
from chokaq.store.views import Views

VIEWS = Views(from_ms)
