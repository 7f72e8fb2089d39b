"""How the commands end."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command; `worker`, once it has read its settings, ends as chokaq.supervisor.exits says."""

    OK = 0
    PROBLEM = 1
    """Something was found wrong, or the request was refused."""
    USAGE = 2
    CONFIGURATION = 3
    """chokaq.yaml, the environment, the application, or how the store is named."""
    UNREACHABLE = 4
    """The store cannot be reached; may pass by itself."""
    SCHEMA = 5
    """The database's schema is missing, older or newer than this program."""


HELP = (
    "[bold]Exit codes:[/bold] 0 done; 1 a problem was found, or the request was refused; 2 wrong usage; 3 configuration; "
    "4 the store cannot be reached; 5 the schema does not fit this program.\n\n"
    "[bold]Environment:[/bold] CHOKAQ_CONFIG (the YAML file; else ./chokaq.yaml), CHOKAQ_DATABASE_URL, CHOKAQ_APP, "
    "CHOKAQ_LOG_LEVEL, CHOKAQ_LOG_FORMAT, CHOKAQ_PRODUCTION (each wins over the file), CHOKAQ_QUEUES (what a worker serves)."
)
