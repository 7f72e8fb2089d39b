"""Every block of every page does what the page says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.blocks import Block, Page, pages, read_page
from tests.docs.checks import CHECKS
from tests.docs.commands import check_commands
from tests.docs.place import Failed, Place, check_printed
from tests.docs.setups import SETUPS


@pytest.mark.processes
@pytest.mark.parametrize("path", pages(), ids=lambda path: read_page(path).name)
def test_every_block_of_a_page_does_what_the_page_says(path: Path, tmp_path: Path) -> None:
    page = read_page(path)
    run_page(page, tmp_path)


def run_page(page: Page, tmp_path: Path) -> None:
    """Run and check the blocks of a page in order. Raises Failed, naming the block."""
    folder, scratch = tmp_path / "page", tmp_path / "scratch"
    scratch.mkdir(parents=True)
    folder.mkdir()
    variables = SETUPS[page.setup](folder)
    printed: str | None = None
    with Place(folder, tmp_path / "tools", variables) as place:
        for block in page.blocks:
            printed = _run(block, place, scratch, printed)


def _run(block: Block, place: Place, scratch: Path, printed: str | None) -> str | None:
    """What the block printed; None when nothing can be said about that."""
    if block.language == "text":
        if block.mark != "picture":
            if printed is None:
                raise Failed(f"{block.where} shows what no block before it printed; is it a picture?")
            check_printed(block, printed)
        return None
    if block.language == "console":
        return _console(block, place)
    check: Callable[[Block, Path], None] | None = CHECKS.get(block.language)
    if check is None:
        raise Failed(f"{block.where}: nobody knows how to check a block in {block.language or 'no language'}")
    check(block, scratch)
    if block.title is not None:
        place.write(block)
    if block.language != "python" or block.reason_not_to_run is not None:
        return None
    if block.title is None:
        return place.python(block)
    return None if Path(block.title).name.startswith("test_") else place.imported(block)


def _console(block: Block, place: Place) -> str | None:
    check_commands(block)
    if block.reason_not_to_run is not None:
        return None
    if block.mark == "background":
        place.begin(block)
        return None
    return place.console(block)
