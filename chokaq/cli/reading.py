"""What is typed on a command line, read: durations, instants, payloads."""

import sys
from datetime import datetime
from pathlib import Path

import typer


def seconds(option: str, text: str) -> float:
    """Seconds of a duration like 90s or 1h30m."""
    from chokaq.config.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError:
        raise typer.BadParameter(f"must be a duration like 90s or 1h30m, got {text!r}", param_hint=option) from None


def instant(option: str, text: str) -> datetime:
    """An aware instant; one without a zone is local."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"must be an instant like 2030-01-31T09:00, got {text!r}", param_hint=option) from None


def document(option: str, text: str) -> str:
    """The text itself, that of a file for `@file`, or stdin for `-`."""
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {text[1:]}: {error}", param_hint=option) from None
