"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """`0` when it runs from a folder that was never installed."""
    try:
        return version("chokaq")
    except PackageNotFoundError:
        return "0"
