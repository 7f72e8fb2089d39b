"""The site: every page in the navigation, every link leads somewhere, every metric that a runbook names exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from chokaq.observe.metrics.catalogue import CATALOGUE
from tests.docs.blocks import ROOT, pages

DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def entries(nav: Any) -> list[str]:
    """The pages of a navigation, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [entry for part in parts for entry in entries(part)]


def test_every_page_stands_in_the_navigation_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(entries(nav)) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target, anchor in _LINK.findall(path.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        file = (path.parent / target).resolve()
        assert file.exists(), f"{target} does not exist"
        if path.is_relative_to(DOCS):
            assert file.is_relative_to(DOCS), f"{target} is not part of the site"
        if anchor and file.suffix == ".md":
            assert anchor[1:] in anchors(file), f"{target} has no heading {anchor}"


def anchors(path: Path) -> set[str]:
    """The names by which headings of a page can be linked to."""
    headings = _HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_runbook_says_what_an_operator_needs() -> None:
    runbooks = [path for path in (DOCS / "runbooks").glob("*.md") if path.name != "index.md"]
    overview = (DOCS / "runbooks" / "index.md").read_text(encoding="utf-8")
    assert len(runbooks) >= 11
    for path in runbooks:
        text = path.read_text(encoding="utf-8")
        assert f"]({path.name})" in overview, path.name
        for part in (
            "**Alert:**",
            "**It means**",
            "## First five minutes",
            "## Tell the causes apart",
            "## Act",
            "## Do not",
        ):
            assert part in text, f"{path.name} has no {part}"


def test_every_metric_that_a_runbook_names_exists() -> None:
    known = {instrument.name for instrument in CATALOGUE}
    for path in (DOCS / "runbooks").glob("*.md"):
        for name in re.findall(r"\bchokaq_\w+", path.read_text(encoding="utf-8")):
            assert name in known, f"{path.name}: there is no metric {name}"
