"""docs/commands.md, out of the command line itself."""

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from chokaq.cli.program import build
from tools.reference.markdown import GENERATED, cell, code, table

_INTRODUCTION = """\
# Commands

`--config FILE` and `--database URL` may stand before or after any command. With `--json`, of every command that has something to
print, one JSON document is on stdout and nothing else; messages go to stderr.

| exit code | means |
|---|---|
| 0 | done |
| 1 | a problem was found, or the request was refused |
| 2 | wrong usage |
| 3 | the configuration, the application, or how the store is named |
| 4 | the store cannot be reached; may pass by itself |
| 5 | the schema does not fit this program |

`chokaq worker`, once it has read its settings, ends with 0 after a clean drain, 1 when something had to be killed, 70 after a
defect of its own, 78 when a child cannot boot (starting it again will not help).

What destroys, what acts by filter, and what touches 25 jobs or more asks for a phrase such as `purge 12`. `--yes` stands for it,
but not where the settings say `production: true`.
"""
_EVERYWHERE = {"config", "database", "as_json", "help", "install_completion", "show_completion"}


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(build())
    parts = [f"{GENERATED}\n\n{_INTRODUCTION}"]
    parts += [_command(words, command) for words, command in _leaves(root, "chokaq")]
    return "\n".join(parts)


def _leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something: a group that does so by itself comes before what it holds."""
    children = getattr(command, "commands", None)
    if children is None or (command.invoke_without_command and words != "chokaq"):
        yield words, command
    for name, child in (children or {}).items():
        yield from _leaves(child, f"{words} {name}")


def _command(words: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.name not in _EVERYWHERE
    ]
    usage = " ".join([words, *(_metavar(argument) for argument in arguments)])
    rows = [(code(_metavar(argument)), cell(argument.help or "")) for argument in arguments]
    rows += [(_names(option), cell(option.help or "")) for option in options]
    call = f"`{usage}`\n\n" if arguments else ""
    return f"## `{words}`\n\n{call}{_text(command.help or '')}\n\n{table(('argument', 'meaning'), rows)}"


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper().rstrip("_")
    return str(name if argument.required else f"[{name}]")


def _names(option: Any) -> str:
    names = sorted([*option.opts, *option.secondary_opts], key=len)
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return cell(", ".join(code(name) for name in names[:-1]) + (", " if names[:-1] else "") + code(names[-1] + value))


def _text(text: str) -> str:
    """Help, its lines joined: paragraphs stay."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
