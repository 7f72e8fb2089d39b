"""What this machine could not check is said loudly."""

import pytest

from .prometheus import PACKAGES, missing


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the programs that were not there."""
    if absent := missing():
        terminalreporter.section("RULES NOT CHECKED", sep="!", red=True, bold=True)
        packages = " ".join(sorted({PACKAGES[program] for program in absent}))
        terminalreporter.line(
            f"Not here: {', '.join(absent)}. The rules of deploy/prometheus were not run: apt-get install {packages}"
        )
