"""Where the blocks of one page run: a folder of its own, a Python namespace, programs in the background."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.docs.blocks import ROOT, Block
from tests.support.polling import wait_until

WIDTH = "300"
"""Columns of a terminal that is none: no line is broken, however long the folder's name."""
_PROGRAMS = {"chokaq": "-m chokaq", "python": "", "pytest": "-m pytest -p no:cacheprovider", "mkdocs": "-m mkdocs"}


class Failed(AssertionError):
    """A block did not do what its page says."""


class Place:
    """A folder, and everything that runs in it; a `with` block ends all of it."""

    def __init__(self, folder: Path, tools: Path, variables: Mapping[str, str]) -> None:
        """`folder`: working directory; `tools`: a folder that becomes the place of the programs `chokaq`, `python`, `pytest`;
        `variables`: what its commands find in the environment."""
        self.folder = folder
        self._environ = _environment(tools) | variables
        self._notebook: subprocess.Popen[str] | None = None
        self._background: list[tuple[Block, subprocess.Popen[bytes], Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        if self._notebook is not None:
            self._notebook.communicate()
        endings = [_ended(*each) for each in self._background]
        for (block, _, log), code in zip(self._background, endings, strict=True):
            words = log.read_text(errors="replace")[-6_000:]
            if error is not None:
                error.add_note(f"the program of {block.where} said:\n{words}")
            elif code != 0:
                raise Failed(f"{block.where} ended with {code}:\n{words}")

    def write(self, block: Block) -> None:
        """Make the block the file it is titled after."""
        assert block.title is not None
        file = self.folder / block.title
        if not file.resolve().is_relative_to(self.folder.resolve()):
            raise Failed(f"{block.where}: {block.title} lies outside the page's folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")

    def python(self, block: Block) -> str:
        """Run a block in the page's namespace; what it printed. Raises Failed with its traceback."""
        return self._ask(block, code=block.text, file=str(block.page.relative_to(ROOT)), line=block.line)

    def imported(self, block: Block) -> str:
        """Import the module that a titled block has become, in the page's interpreter."""
        assert block.title is not None
        return self._ask(block, module=block.title.removesuffix(".py").replace("/", "."))

    def console(self, block: Block) -> str:
        """Run the commands of a block, all of which must succeed (the last one may have its own exit code); their stdout."""
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self.folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        if ran.returncode != block.exit_code:
            raise Failed(
                f"{block.where} ended with {ran.returncode}, not {block.exit_code}:\n{ran.stdout}\n{ran.stderr[-6_000:]}"
            )
        return ran.stdout

    def begin(self, block: Block) -> None:
        """Start the program of a block, which goes on until the page ends."""
        log = self.folder / f"background-{len(self._background)}.log"
        lines = block.text.strip().splitlines()
        with log.open("wb") as out:
            program = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", "\n".join([*lines[:-1], f"exec {lines[-1]}"])],
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._background.append((block, program, log))
        # Before its first word it may not know yet what a signal means.
        wait_until(lambda: log.stat().st_size > 0 or program.poll() is not None, f"a word of {block.where}")

    def _ask(self, block: Block, **order: Any) -> str:
        if self._notebook is None:
            self._notebook = subprocess.Popen(
                [sys.executable, "-W", "error", str(Path(__file__).with_name("programs") / "notebook.py")],
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        _pipe(self._notebook.stdin).write(json.dumps(order) + "\n")
        _pipe(self._notebook.stdin).flush()
        answer = _pipe(self._notebook.stdout).readline()
        if not answer:
            raise Failed(f"{block.where} ended the interpreter with {self._notebook.wait()}")
        found = json.loads(answer)
        if found["error"] is not None:
            raise Failed(f"{block.where} raised:\n{found['error']}")
        return str(found["printed"])


def check_printed(block: Block, printed: str) -> None:
    """Hold a text block to what the block before it printed. `…` stands for any text, alone on a line for any lines."""
    wanted = [line.rstrip() for line in block.text.rstrip().splitlines()]
    found = "".join(line.rstrip() + "\n" for line in printed.strip("\n").splitlines())
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "…" else _loosely(line) + r"\n" for line in wanted)
    if not re.fullmatch(pattern, found):
        raise Failed(f"{block.where} says:\n{block.text}\nbut this was printed:\n{found}")


def _loosely(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…"))


def _environment(tools: Path) -> dict[str, str]:
    """This process's environment without chokaq's variables, its own programs first."""
    tools.mkdir(parents=True, exist_ok=True)
    for name, arguments in _PROGRAMS.items():
        program = tools / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHOKAQ_", "PYTEST_"))}
    return {
        **kept,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": WIDTH,
        "TZ": "UTC",
    }


def _ended(_block: Block, program: subprocess.Popen[bytes], _log: Path) -> int:
    """The exit code after a SIGTERM; whatever does not end is killed with all it started."""
    program.send_signal(signal.SIGTERM)
    try:
        return program.wait(45)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        return program.wait()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
