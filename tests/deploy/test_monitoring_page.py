"""docs/monitoring.md says of every alert what the rules say."""

import re

from .files import ROOT, document
from .prometheus import FOLDER, alerts

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(Chokaq\w+)` \| (\w+) \| (\w+) \| (.+?) \| \[(.+?)\]\((.+?)\) \|$", re.MULTILINE)


def test_the_table_holds_every_alert_with_its_severity_its_time_and_its_runbook() -> None:
    told = {name: (severity, lasts, page) for name, severity, lasts, _, _, page in ROW.findall(PAGE)}
    real = {alert.name: (alert.severity, alert.lasts, f"runbooks/{alert.runbook.name}") for alert in alerts()}
    assert told == real
    assert len(ROW.findall(PAGE)) == len(told)


def test_links_of_the_table_carry_the_titles_of_their_pages() -> None:
    for _, _, _, _, title, page in ROW.findall(PAGE):
        heading = next(
            line for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines() if line.startswith("# ")
        )
        assert heading == f"# {title}"


def test_the_numbers_of_the_objectives_are_those_of_the_rules() -> None:
    rates = re.findall(r"^\| (fast|slow) \| (.+?) and (.+?) \| ([\d.]+) \| \d+ % \|$", PAGE, re.MULTILINE)
    short = {"min": "m", "h": "h", "day": "d", "days": "d"}

    def window(words: str) -> str:
        number, unit = words.split()
        return number + short[unit]

    for alert in alerts():
        match = re.fullmatch(r"Chokaq(Start|Dlq)Objective(Fast|Slow)Burn", alert.name)
        if match is None:
            continue
        series, budget = {"Start": ("late", "0.01"), "Dlq": ("dead", "0.001")}[match[1]]
        pairs = [(window(long), window(brief), rate) for kind, long, brief, rate in rates if kind == match[2].lower()]
        assert len(pairs) == 2
        for long, brief, rate in pairs:
            limit = budget if rate == "1" else f"{rate} * {budget}"
            for span in (long, brief):
                assert f"chokaq:{series}:ratio{span} > {limit}" in alert.expr, f"{alert.name}: {span}"


def test_every_window_of_the_objectives_is_recorded_from_the_same_counts() -> None:
    rules = {
        rule["record"]: rule["expr"]
        for group in document(FOLDER / "rules" / "objectives.yml")["groups"]
        for rule in group["rules"]
    }
    for name, expression in rules.items():
        match = re.fullmatch(r"chokaq:(late|dead):ratio(\w+)", name)
        assert match, name
        bad, whole = {"late": ("late", "started"), "dead": ("dead", "ended")}[match[1]]
        part, all_of_them = f"chokaq:{bad}:increase5m", f"chokaq:{whole}:increase5m"
        if match[2] == "5m":
            assert expression == f"{part} / ({all_of_them} > 0)"
        else:
            assert expression == f"sum_over_time({part}[{match[2]}]) / (sum_over_time({all_of_them}[{match[2]}]) > 0)"


def test_the_page_tells_of_every_file_that_is_shipped() -> None:
    for file in [*(FOLDER.glob("*.y*ml")), *(FOLDER.parent / "grafana").glob("*.json")]:
        assert file.name in PAGE
