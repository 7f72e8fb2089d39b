"""Judges commands that are shown and cannot be run here: what can be known of them without running them."""

import importlib.util
import io
import re
import shlex
import subprocess
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from typing import Any

import typer.main

import bench.cli
from chokaq.cli.program import build
from tests.docs.blocks import ROOT, Block
from tests.docs.place import Failed

OTHERS = {
    ".", "amtool", "cat", "cd", "cp", "createdb", "curl", "docker", "echo", "export", "git", "helm", "install", "journalctl",
    "kill", "kubectl", "loginctl", "ls", "mkdir", "openssl", "pgrep", "promtool", "psql", "pytest-benchmark", "ps", "rm", "sed",
    "sqlcmd", "systemctl", "systemd-analyze", "systemd-creds", "systemd-run", "systemd-sysusers", "tar", "top", "true",
    "useradd",
}  # fmt: skip
"""Programs that are not ours: their lines are read by the shell's own parser, and no further."""
_BETWEEN = set("|&;()")
"""What separates commands is made of these."""


def check_commands(block: Block) -> None:
    """Raises Failed for a line the shell cannot read, an unknown program, or a command of ours that it would not accept."""
    parsed = subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True, check=False)
    if parsed.returncode != 0:
        raise Failed(f"{block.where} cannot be read by a shell: {parsed.stderr}")
    for words in commands(block.text):
        problem = _problem(words)
        if problem is not None:
            raise Failed(f"{block.where}: `{shlex.join(words)}`: {problem}")


def commands(text: str) -> list[list[str]]:
    """The simple commands of a script, without redirections, assignments and comments."""
    found: list[list[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, "#"
        words: list[str] = []
        skip = False
        for word in [*lexer, ";"]:
            if word and set(word) <= _BETWEEN:
                if words:
                    found.append(words)
                words = []
            elif skip:
                skip = False
            elif word and set(word) <= set("<>&"):
                skip = True
                # The number of a descriptor before `>` is no argument.
                if words and words[-1] in {"1", "2"}:
                    words.pop()
            elif words or not re.fullmatch(r"[A-Za-z_]\w*=.*", word):
                words.append(word)
    return found


def _problem(words: list[str]) -> str | None:
    program, arguments = words[0], words[1:]
    match program:
        case "sudo" | "exec" | "watch":
            return _problem(arguments) if arguments and not arguments[0].startswith("-") else None
        case "chokaq":
            return _refused(arguments)
        case "pip":
            return _no_such_extra(arguments)
        case "pytest":
            paths = (word for word in arguments if "/" in word and not word.startswith("-"))
            return next((f"{path} does not exist" for path in paths if not _exists(path)), None)
        case "python":
            return _no_module(arguments)
        case _:
            return None if program in OTHERS else f"no program {program!r} is known to these tests"


def _exists(path: str) -> bool:
    return (ROOT / path.split("::", maxsplit=1)[0]).exists()


def _no_module(arguments: list[str]) -> str | None:
    if arguments[:1] == ["-c"]:
        return None
    if arguments[:1] != ["-m"]:
        return None if arguments and _exists(arguments[0]) else "only modules and files of ours can be checked"
    if arguments[1] == "bench":
        with redirect_stderr(io.StringIO()) as said:
            try:
                bench.cli.parser().parse_args(arguments[2:])
            except SystemExit:
                return said.getvalue()
    return None if importlib.util.find_spec(arguments[1]) else f"there is no module {arguments[1]}"


def _no_such_extra(arguments: list[str]) -> str | None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for word in arguments:
        if match := re.fullmatch(r"(?:chokaq|\.)\[([\w,]+)\](?:[=<>~].*)?", word):
            missing = set(match[1].split(",")) - set(known)
            if missing:
                return f"there is no extra {', '.join(sorted(missing))}"
    return None


@cache
def _program() -> Any:
    """The command line with nothing behind it."""
    root = typer.main.get_command(build())
    waiting: list[Any] = [root]
    while waiting:
        command = waiting.pop()
        command.callback = lambda **_arguments: None
        waiting += getattr(command, "commands", {}).values()
    return root


def _refused(arguments: list[str]) -> str | None:
    """What the command line would say of these arguments, without doing anything."""
    with redirect_stdout(io.StringIO()):
        try:
            _program().main(list(arguments), prog_name="chokaq", standalone_mode=False)
        except SystemExit:
            return None
        except Exception as error:
            said = getattr(error, "format_message", None)
            if said is None:
                raise
            return str(said())
    return None
