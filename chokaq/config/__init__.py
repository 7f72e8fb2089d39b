"""YAML and environment → typed, checked settings."""

from chokaq.config.complete import load_worker_settings, settings_for_app
from chokaq.config.describe import ApplicationError
from chokaq.config.errors import ConfigError, Problem
from chokaq.config.importing import load_app
from chokaq.config.load import Loaded, load, load_settings
from chokaq.config.settings import Policy, QueueSettings, Settings

__all__ = [
    "ApplicationError",
    "ConfigError",
    "Loaded",
    "Policy",
    "Problem",
    "QueueSettings",
    "Settings",
    "load",
    "load_app",
    "load_settings",
    "load_worker_settings",
    "settings_for_app",
]
