"""Finds the fenced blocks of a page, and what the comment above each one says about it.

A comment on the line above a fence, `<!-- block: … -->`, is seen by the tests and not by readers:

| comment | means |
|---|---|
| `not run: REASON` | it is checked without being run, since it needs what a test machine does not have |
| `exits N` | a console block whose last command ends with this exit code |
| `background` | a console block whose program goes on until the page ends; then it gets SIGTERM and must end with 0 |
| `picture` | a text block that shows something; without it a text block is what the block before it prints |

`title="jobs.py"` behind the language makes the block that file. `<!-- page: NAME -->` on a line of its own says in which prepared
folder the page's blocks run (tests/docs/setups.py).
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>.*)$")
_COMMENT = re.compile(r"^ *<!-- block: (.*?) -->$")
_PAGE = re.compile(r"^<!-- page: (\w+) -->$")
_TITLE = re.compile(r'title="([^"]+)"')
MARKS = re.compile(r"not run: .{5,}|exits \d+|background|picture")


class PageError(AssertionError):
    """A page is written in a way that its blocks cannot be found or understood."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    """Of its first line inside the fence, from 1."""
    language: str
    title: str | None
    mark: str | None
    text: str
    """Without the fence and its indentation; ends with a line feed unless empty."""

    @property
    def where(self) -> str:
        """`docs/index.md:12`, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason_not_to_run(self) -> str | None:
        """Why it is not run; None: it is."""
        return (
            self.mark.removeprefix("not run: ") if self.mark is not None and self.mark.startswith("not run: ") else None
        )

    @property
    def exit_code(self) -> int:
        """How the last command of a console block has to end."""
        return int(self.mark.removeprefix("exits ")) if self.mark is not None and self.mark.startswith("exits ") else 0


@dataclass(frozen=True)
class Page:
    """One page: its blocks in order, and the folder they expect."""

    path: Path
    setup: str
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        """`docs/index.md`."""
        return str(self.path.relative_to(ROOT))


def pages() -> list[Path]:
    """Every page whose blocks are tested."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read_page(path: Path) -> Page:
    """Raises PageError, naming the line, for a fence without an end or a comment that nobody understands."""
    return parse(path, path.read_text(encoding="utf-8"))


def parse(path: Path, text: str) -> Page:
    """As `read_page`, of a text."""
    blocks: list[Block] = []
    setup, above, lines = "empty", "", iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if match := _PAGE.match(line):
            setup = match[1]
        if match := _FENCE.match(line):
            blocks.append(_block(path, number, match, above, lines))
            above = ""
        else:
            if _COMMENT.match(above):
                raise PageError(f"{path}:{number}: a comment about a block must stand right above its fence")
            above = line
    return Page(path, setup, tuple(blocks))


def _block(path: Path, number: int, opening: re.Match[str], above: str, lines: Iterator[tuple[int, str]]) -> Block:
    inside: list[str] = []
    for _, line in lines:
        if line.strip().startswith(opening["fence"]) and not line.strip().strip(opening["fence"][0]):
            break
        inside.append(line)
    else:
        raise PageError(f"{path}:{number}: this fence has no end")
    comment = _COMMENT.match(above)
    if comment is not None and not MARKS.fullmatch(comment[1]):
        raise PageError(f"{path}:{number - 1}: nobody understands this comment: {comment[1]}")
    words = opening["info"].split(maxsplit=1)
    title = _TITLE.search(opening["info"])
    return Block(
        page=path,
        line=number + 1,
        language=words[0] if words else "",
        title=title[1] if title else None,
        mark=comment[1] if comment else None,
        text=textwrap.dedent("".join(line + "\n" for line in inside)),
    )
