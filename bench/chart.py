"""A small bar chart as SVG: horizontal bars in groups, the spread as a line on each."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from bench.figures import Spread, shown

_COLOURS = ("#2f6f8f", "#e0913a", "#6b8e4e")
_OURS = ("#b3261e", "#e8837c", "#7a1a15")
_LABEL, _BAR, _GAP, _WIDTH, _RIGHT = 210, 16, 14, 520, 110


class Group(NamedTuple):
    """One system."""

    label: str
    values: Sequence[Spread | None]
    """One per series; None: not measured."""
    ours: bool = False


def bars(title: str, series: Sequence[str], groups: Sequence[Group], note: str = "") -> str:
    """The SVG document. Bars of the largest group come first as given; the longest bar fills the width."""
    longest = max((value.high for group in groups for value in group.values if value is not None), default=1.0) or 1.0
    y, parts = 64, []
    for group in groups:
        colours = _OURS if group.ours else _COLOURS
        middle = y + _BAR * len(series) / 2 + 4
        weight = ' font-weight="bold"' if group.ours else ""
        parts.append(f'<text x="{_LABEL - 10}" y="{middle:.0f}" text-anchor="end"{weight}>{escape(group.label)}</text>')
        for index, value in enumerate(group.values):
            if value is not None:
                parts += _bar(value, longest, y + index * _BAR, colours[index % len(colours)])
        y += _BAR * len(series) + _GAP
    legend = "".join(
        f'<rect x="{_LABEL + 150 * index}" y="38" width="12" height="12" fill="{_COLOURS[index % len(_COLOURS)]}"/>'
        f'<text x="{_LABEL + 18 + 150 * index}" y="48">{escape(name)}</text>'
        for index, name in enumerate(series)
    )
    width, height = _LABEL + _WIDTH + _RIGHT, y + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="system-ui, sans-serif" font-size="12" fill="#222">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text x="{_LABEL}" y="22" font-size="15" font-weight="bold">{escape(title)}</text>{legend}{"".join(parts)}'
        f'<text x="{_LABEL}" y="{height - 10}" fill="#666">{escape(note)}</text></svg>\n'
    )


def _bar(value: Spread, longest: float, y: float, colour: str) -> list[str]:
    scale = _WIDTH / longest
    end, middle = _LABEL + value.median * scale, y + _BAR / 2 - 1
    low, high = _LABEL + value.low * scale, _LABEL + value.high * scale
    text = max(end, high) + 6
    return [
        f'<rect x="{_LABEL}" y="{y:.0f}" width="{value.median * scale:.1f}" height="{_BAR - 2}" fill="{colour}"/>',
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="#222"/>',
        f'<text x="{text:.1f}" y="{middle + 4:.1f}">{shown(value.median)}</text>',
    ]
