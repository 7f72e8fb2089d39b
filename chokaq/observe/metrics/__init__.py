"""Metrics for Prometheus: what is counted (catalogue), how the processes of a worker count, and how they become one exposition."""

from chokaq.observe.metrics.application import instrument
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.process import begin_process, begin_run, directory, end_run

__all__ = ["MetricsSettings", "begin_process", "begin_run", "directory", "end_run", "instrument"]
