"""The metrics of an application's own process: into its Prometheus registry, or through its OpenTelemetry meter.

What happens there (enqueues, errors of the database) is counted there, never in the database inside a caller's transaction.
"""

import threading
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from chokaq.observe.metrics.budget import Budget, Labels
from chokaq.observe.metrics.catalogue import BY_NAME, CATALOGUE, Instrument, Kind, Source
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.sink import Sink, sql

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from prometheus_client import CollectorRegistry

_OVERFLOWS = "chokaq_metrics_overflows_total"


class Counting(Protocol):
    """What `instrument` needs of a ChokaQ."""

    @property
    def settings(self) -> Any:
        """With `metrics` and `database` among them."""
        ...

    def count_with(self, sink: Sink | None) -> None:
        """Count enqueues there from now on."""
        ...


def instrument(app: Counting, *, registry: "CollectorRegistry | None" = None, meter: "Meter | None" = None) -> None:
    """Count what `app` enqueues in this process: jobs created, duplicates, refusals, durations, errors of the database.

    `registry`: the Prometheus registry to register with; None: the default one, which `prometheus_client` exports. Under forking
    servers (gunicorn) with PROMETHEUS_MULTIPROC_DIR set the figures of all workers are exported together, as usual. `meter`: an
    OpenTelemetry meter (extra `chokaq[otel]`) instead. Call it once, at import time; several applications may share a registry.

    The budgets of `metrics:` in chokaq.yaml hold; its `enabled` does not: it is about a worker, whose own handlers are counted
    there, whatever was called here. Raises TypeError when both are given.
    """
    if registry is not None and meter is not None:
        raise TypeError("instrument: give a `registry` or a `meter`, not both")
    sink: Sink
    if meter is not None:
        sink = MeterSink(meter, app)
    else:
        from prometheus_client import REGISTRY

        sink = _registered(REGISTRY if registry is None else registry, app)
    app.count_with(sink)
    sql.sink = sink


class _Budgeted:
    """Label values within their budgets; the settings are read when the first value comes."""

    def __init__(self, app: Counting) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._budget: Budget | None = None
        self._spent: list[str] = []

    def admit(self, instrument: Instrument, values: Labels) -> tuple[Labels, list[str]]:
        """The values to export, and the labels whose budget that has found used up."""
        with self._lock:
            if self._budget is None:
                self._budget = Budget(_settings(self._app), self._spent.append)
            admitted = self._budget.admit(instrument, values)
            spent = self._spent[:]
            self._spent.clear()
        return admitted, spent


def _settings(app: Counting) -> MetricsSettings:
    try:
        found: MetricsSettings = app.settings.metrics
    except Exception:  # noqa: BLE001 - whoever enqueues is told what is wrong with them, by the call itself
        return MetricsSettings()
    return found


def _applied() -> list[Instrument]:
    return [one for one in CATALOGUE if Source.APPLICATION in one.sources]


class RegistrySink:
    """Counts with metrics of one Prometheus registry."""

    def __init__(self, registry: "CollectorRegistry", app: Counting) -> None:
        from prometheus_client import Counter, Histogram

        self._budgeted = _Budgeted(app)
        self._metrics: dict[str, Any] = {}
        for one in _applied():
            if one.kind is Kind.COUNTER:
                self._metrics[one.name] = Counter(one.name, one.help, one.labels, registry=registry)
            else:
                self._metrics[one.name] = Histogram(
                    one.name, one.help, one.labels, registry=registry, buckets=one.bounds
                )

    def add(self, name: str, *values: str, amount: float = 1.0) -> None:
        """Count so many."""
        self._metrics[name].labels(*self._admitted(name, values)).inc(amount)

    def observe(self, name: str, *values: str, value: float) -> None:
        """Count one value of a histogram."""
        self._metrics[name].labels(*self._admitted(name, values)).observe(value)

    def _admitted(self, name: str, values: Labels) -> Labels:
        admitted, spent = self._budgeted.admit(BY_NAME[name], values)
        for label in spent:
            self._metrics[_OVERFLOWS].labels(label).inc()
        return admitted


class MeterSink:
    """Counts with instruments of an OpenTelemetry meter; `chokaq_jobs_enqueued_total` is `chokaq.jobs.enqueued` there."""

    def __init__(self, meter: "Meter", app: Counting) -> None:
        self._budgeted = _Budgeted(app)
        self._instruments: dict[str, Any] = {}
        for one in _applied():
            name = meter_name(one)
            if one.kind is Kind.COUNTER:
                self._instruments[one.name] = meter.create_counter(name, f"{{{one.unit}}}", one.help)
            else:
                self._instruments[one.name] = meter.create_histogram(
                    name, "s", one.help, explicit_bucket_boundaries_advisory=one.bounds
                )

    def add(self, name: str, *values: str, amount: float = 1.0) -> None:
        """Count so many."""
        self._instruments[name].add(amount, self._attributes(name, values))

    def observe(self, name: str, *values: str, value: float) -> None:
        """Count one value of a histogram."""
        self._instruments[name].record(value, self._attributes(name, values))

    def _attributes(self, name: str, values: Labels) -> dict[str, str]:
        admitted, spent = self._budgeted.admit(BY_NAME[name], values)
        for label in spent:
            self._instruments[_OVERFLOWS].add(1, {"label": label})
        return dict(zip(BY_NAME[name].labels, admitted, strict=True))


def meter_name(instrument: Instrument) -> str:
    """The name by OpenTelemetry's custom: dots, and neither unit nor kind in it."""
    return instrument.name.removesuffix("_total").removesuffix("_seconds").replace("_", ".")


_sinks: "weakref.WeakKeyDictionary[CollectorRegistry, RegistrySink]" = weakref.WeakKeyDictionary()
"""A metric can be registered once per registry; applications that share one count together."""


def _registered(registry: "CollectorRegistry", app: Counting) -> RegistrySink:
    sink = _sinks.get(registry)
    if sink is None:
        sink = _sinks[registry] = RegistrySink(registry, app)
    return sink
