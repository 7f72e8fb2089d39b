"""Policy options that were not read from a YAML file, held to the same rules as those that were."""

from collections.abc import Mapping

from chokaq.config.durations import format_duration
from chokaq.config.sections import POLICY


def check_policy(fields: Mapping[str, object]) -> None:
    """Check the values of Policy fields given in code. Raises ValueError: the option, what it must be and what it is."""
    for name, value in fields.items():
        try:
            POLICY[name](value)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    base, most = fields.get("retry_base_delay"), fields.get("retry_max_delay")
    if isinstance(base, int | float) and isinstance(most, int | float) and most < base:
        raise ValueError(f"retry_max_delay must be at least retry_base_delay ({format_duration(base)}), got {most:g}")
