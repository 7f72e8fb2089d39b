"""The tests of the pages would notice: what is wrong with a block is found, and named by page and line."""

from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, PageError, parse
from tests.docs.commands import check_commands, commands
from tests.docs.place import Failed, check_printed
from tests.docs.test_pages import run_page

PAGE = ROOT / "docs" / "page.md"


def run(tmp_path: Path, text: str) -> None:
    """Run a page of this text."""
    run_page(parse(PAGE, text), tmp_path)


def test_blocks_are_found_with_their_language_title_mark_and_line() -> None:
    page = parse(
        PAGE,
        '<!-- page: shop -->\n# Title\n\n```python title="a.py"\nx = 1\n```\n\n1. item\n\n    <!-- block: not run: no server -->\n'
        "    ```console\n    chokaq worker\n    ```\n\n````text\n```\n````\n",
    )
    assert page.setup == "shop"
    assert [(block.language, block.title, block.mark, block.line, block.text) for block in page.blocks] == [
        ("python", "a.py", None, 5, "x = 1\n"),
        ("console", None, "not run: no server", 12, "chokaq worker\n"),
        ("text", None, None, 16, "```\n"),
    ]
    assert page.blocks[1].reason_not_to_run == "no server"
    assert page.blocks[0].where == "docs/page.md:5"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nx = 1\n", "has no end"),
        ("<!-- block: not run: no server -->\n\n```console\nls\n```\n", "right above its fence"),
        ("<!-- block: skip -->\n```console\nls\n```\n", "nobody understands"),
        ("<!-- block: not run: -->\n```console\nls\n```\n", "nobody understands"),
    ],
)
def test_a_page_that_cannot_be_understood_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(PageError, match=complaint):
        parse(PAGE, text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nassert 1 == 2\n```\n", r"docs/page\.md:2 raised:[^$]*assert 1 == 2"),
        ("```python\nimport asyncio\n\nawait asyncio.sleep(0)\nnobody\n```\n", 'page.md", line 5'),
        ("```python\nx = (\n```\n", "is no Python"),
        ('```python title="broken.py"\nraise OSError("no")\n```\n', "raised:"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "says:"),
        ("```text\nhello\n```\n", "is it a picture"),
        ("```console\nchokaq nothing\n```\n", "nothing"),
        ("```console\nchokaq check --offline\nfalse\n```\n", "no program 'false'"),
        ("<!-- block: exits 3 -->\n```console\nchokaq config --show\n```\n", "ended with 0, not 3"),
        ("```yaml\nqueues: {emails: {max_wrokers: 3}}\n```\n", "cannot be loaded: [^$]*max_wrokers"),
        ("```yaml\na: [\n```\n", "is no YAML"),
        ("```json\n{a: 1}\n```\n", "is no JSON"),
        ("```toml\na = \n```\n", "is no TOML"),
        ("```ini\n[Service\n```\n", "is no unit file"),
        ("```csharp\nvoid F() { G(; }\n```\n", "closes nothing"),
        ("```rust\nfn main() {}\n```\n", "nobody knows how to check"),
        ("```\nls\n```\n", "no language"),
        ('```yaml title="../away.yaml"\nproduction: false\n```\n', "outside the page's folder"),
    ],
)
def test_what_is_wrong_with_a_block_is_found(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(Failed, match=complaint):
        run(tmp_path, text)


def test_sql_is_parsed(tmp_path: Path) -> None:
    run(tmp_path, "```sql\nSELECT TOP (1) Id FROM chokaq.Jobs ORDER BY Id;\n```\n")
    with pytest.raises(Failed, match="is no T-SQL"):
        run(tmp_path / "again", "```sql\nSELECT FROM WHERE;\n```\n")


def test_json_is_one_document_or_one_a_line(tmp_path: Path) -> None:
    run(tmp_path, '```json\n{\n"a": 1\n}\n```\n\n```json\n{"a": 1}\n{"b": 2}\n```\n')


def test_yaml_for_somebody_else_is_only_parsed_and_variables_are_filled_in(tmp_path: Path) -> None:
    run(
        tmp_path,
        "```yaml\napiVersion: v1\nkind: Pod\n```\n\n```yaml\ndeck: {host: 0.0.0.0, token: '${SOME_TOKEN}'}\n```\n\n"
        "```yaml\ndeck: {token: '${file:/run/secrets/token}'}\n```\n",
    )


def test_the_blocks_of_a_page_share_a_namespace_a_folder_and_variables(tmp_path: Path) -> None:
    run(
        tmp_path,
        '```python title="pair.py"\none = 1\n```\n\n```python\nfrom pair import one\n```\n\n'
        "```python\nprint(one + 1)\n```\n\n```text\n2\n```\n\n```console\ncat pair.py\n```\n\n```text\none = 1\n```\n",
    )


def test_a_program_in_the_background_has_to_end_well(tmp_path: Path) -> None:
    stubborn = "import signal, sys; signal.signal(15, lambda *_: sys.exit(3)); print('up'); signal.pause()"
    with pytest.raises(Failed, match=r"page\.md:3 ended with 3"):
        run(tmp_path, f'<!-- block: background -->\n```console\npython -c "{stubborn}"\n```\n')


@pytest.mark.parametrize(
    "line",
    [
        "chokaq dlq list --lmit 3",
        "chokaq queues set emails --max-workers many",
        "chokaq circuits force email.send.v1 ajar",
        "pip install 'chokaq[dekc]'",
        "pytest tests/nowhere",
        "python -m chokaq_bench",
        "python -m bench throughput --strore sqlite",
        "chokaq-admin list",
        "chokaq check && chokaq frobnicate",
        "ls 'unfinished",
    ],
)
def test_a_command_that_would_be_refused_is_found_without_running_it(line: str) -> None:
    page = parse(PAGE, f"<!-- block: not run: it is a test -->\n```console\n{line}\n```\n")
    with pytest.raises(Failed, match=r"docs/page\.md:3"):
        check_commands(page.blocks[0])


def test_commands_are_taken_apart_as_a_shell_does() -> None:
    script = "A=1 chokaq status --json > 'a file' 2>&1 || true  # a word\nchokaq dlq list \\\n  --limit 3 | cat\n"
    status, listed = ["chokaq", "status", "--json"], ["chokaq", "dlq", "list", "--limit", "3"]
    assert commands(script) == [status, ["true"], listed, ["cat"]]
    assert commands("ID=$(chokaq workers --json | cat)\n") == [["chokaq", "workers", "--json"], ["cat"]]


def test_an_ellipsis_stands_for_any_text_and_alone_for_any_lines() -> None:
    block = parse(PAGE, "```text\nid 01…, done\n…\nend\n```\n").blocks[0]
    check_printed(block, "id 01ABC, done\none\ntwo\nend\n")
    check_printed(block, "id 01, done\nend")
    for wrong in ("id 02, done\nend", "id 01, done\nend2", "x\nid 01, done\nend", "id 01, done"):
        with pytest.raises(Failed):
            check_printed(block, wrong)
