"""From the figures of a worker's processes to the text that Prometheus reads."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from chokaq.observe.metrics.catalogue import BY_NAME, CATALOGUE, Instrument, Kind
from chokaq.observe.metrics.run import add_up, read_all
from chokaq.observe.metrics.values import Entries, Key


def render(directory: Path) -> tuple[bytes, str]:
    """The exposition of one worker, all its processes merged, and its content type.

    `directory`: the run directory. Raises OSError when it is gone, ValueError when it holds something else.
    """
    return generate_latest(_Collected(families(merge(read_all(directory))))), CONTENT_TYPE_LATEST


def merge(entries: Iterable[tuple[Key, tuple[float, ...]]]) -> Entries:
    """One entry per key: sums, or the largest value of the gauges that say so. What is not known (NaN) is left out."""
    merged: Entries = {}
    for key, values in entries:
        instrument = BY_NAME.get(key[0])
        if instrument is None or math.isnan(values[0]):
            continue
        if instrument.largest and key in merged:
            merged[key] = max(merged[key], values)
        else:
            add_up(merged, key, values)
    return merged


def families(merged: Entries) -> Iterator[Metric]:
    """Metrics in the order of the catalogue, those without a sample left out."""
    by_name: dict[str, list[Key]] = {}
    for key in sorted(merged):
        by_name.setdefault(key[0], []).append(key)
    for instrument in CATALOGUE:
        keys = by_name.get(instrument.name)
        if keys:
            yield _family(instrument, [(key[1:], merged[key]) for key in keys])


def _family(instrument: Instrument, samples: list[tuple[tuple[str, ...], tuple[float, ...]]]) -> Metric:
    name, text, labels = instrument.name, instrument.help, instrument.labels
    if instrument.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, text, labels=labels)
        for values, numbers in samples:
            histogram.add_metric(values, _buckets(instrument, numbers), numbers[-1])
        return histogram
    family = (CounterMetricFamily if instrument.kind is Kind.COUNTER else GaugeMetricFamily)(name, text, labels=labels)
    for values, numbers in samples:
        family.add_metric(values, numbers[0])
    return family


def _buckets(instrument: Instrument, numbers: tuple[float, ...]) -> list[tuple[str, float]]:
    """Prometheus counts in every bucket what is in those below it."""
    so_far = 0.0
    buckets = []
    for bound, count in zip((*instrument.bounds, math.inf), numbers[:-1], strict=True):
        so_far += count
        buckets.append(("+Inf" if bound == math.inf else str(bound), so_far))
    return buckets


class _Collected:
    """What `generate_latest` asks for its metrics."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
