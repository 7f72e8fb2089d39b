"""Which metrics and labels an expression rests on, and which labels its result has: a grouping, a join or a sentence that names a
label nobody has is an alert that never fires or says nothing."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import promql_parser as ql

from chokaq.observe.metrics.catalogue import CATALOGUE, Kind

TARGET = frozenset({"job", "instance"})
"""Labels that Prometheus gives every series it scrapes."""
WHERE = frozenset({"namespace"})
"""And where it finds its targets in Kubernetes."""
FOREIGN: Mapping[str, frozenset[str]] = {
    "up": frozenset(),
    "probe_success": frozenset(),
    "ALERTS": frozenset({"alertname", "alertstate", "severity", "queue", "type"}),
}
"""Series that are not ours, with their own labels: Prometheus's and the blackbox exporter's."""


class Labels(NamedTuple):
    """Of the series of a result."""

    always: frozenset[str]
    ever: frozenset[str]
    """Also those that some series have, or have outside of Kubernetes alone."""


class Wrong(AssertionError):
    """An expression names a metric or a label that does not exist."""


def exported() -> dict[str, frozenset[str]]:
    """Every series of the catalogue by name, with its own labels."""
    found: dict[str, frozenset[str]] = {}
    for instrument in CATALOGUE:
        labels = frozenset(instrument.labels)
        if instrument.kind is Kind.HISTOGRAM:
            found |= {f"{instrument.name}_{part}": labels for part in ("count", "sum")}
            found[f"{instrument.name}_bucket"] = labels | {"le"}
        else:
            found[instrument.name] = labels
    return found


class Series:
    """What may be asked for: the catalogue's series, foreign ones, and those that rules record."""

    def __init__(self, recorded: Mapping[str, Labels] | None = None) -> None:
        self._known: dict[str, Labels] = {
            name: Labels(labels | TARGET, labels | TARGET | WHERE)
            for name, labels in (exported() | dict(FOREIGN)).items()
        }
        self._known |= recorded or {}

    def record(self, name: str, expression: str) -> None:
        """From now on there is a series of this name. Raises Wrong."""
        if name in self._known:
            raise Wrong(f"{name} is there already")
        self._known[name] = self.labels(expression)

    def labels(self, expression: str) -> Labels:
        """Of the result of an expression. Raises Wrong for names and labels that do not exist."""
        return self._labels(ql.parse(expression))

    def names(self, expression: str) -> set[str]:
        """Every series that an expression asks for."""
        found: set[str] = set()

        def note(node: Any) -> None:
            if isinstance(node, ql.MatrixSelector):
                found.add(node.vector_selector.name)
            elif isinstance(node, ql.VectorSelector):
                found.add(node.name)

        ql.walk(ql.parse(expression), note)
        return found

    def _labels(self, node: Any) -> Labels:
        match node:
            case ql.VectorSelector():
                return self._selected(node)
            case ql.MatrixSelector():
                return self._selected(node.vector_selector)
            case ql.ParenExpr() | ql.UnaryExpr() | ql.SubqueryExpr():
                return self._labels(node.expr)
            case ql.AggregateExpr():
                return self._aggregated(node)
            case ql.BinaryExpr():
                return self._joined(node)
            case ql.Call():
                return self._called(node)
            case ql.NumberLiteral():
                return _SCALAR
        raise Wrong(f"nobody knows what {type(node).__name__} does to labels")

    def _selected(self, node: Any) -> Labels:
        if node.name not in self._known:
            raise Wrong(f"there is no series {node.name}")
        found = self._known[node.name]
        _ask(found, (matcher.name for matcher in node.matchers.matchers), node)
        sure = {matcher.name for matcher in node.matchers.matchers if _present(matcher)}
        return Labels(found.always | sure, found.ever)

    def _aggregated(self, node: Any) -> Labels:
        inner = self._labels(node.expr)
        if str(node.op) == "topk":
            return inner
        if node.modifier is None:
            return _NONE
        if node.modifier.type != ql.AggModifierType.By:
            raise Wrong(f"name the labels that stay (by): {node.prettify()}")
        wanted = frozenset(node.modifier.labels)
        _ask(inner, wanted, node)
        return Labels(inner.always & wanted, wanted)

    def _joined(self, node: Any) -> Labels:
        left, right = self._labels(node.lhs), self._labels(node.rhs)
        if left is _SCALAR:
            return right
        if right is _SCALAR:
            return left
        matching = node.modifier.matching if node.modifier is not None else None
        if matching is not None:
            if matching.type is not ql.LabelModifierType.Include:
                raise Wrong(f"name the labels that match (on): {node.prettify()}")
            _ask(left, matching.labels, node)
            _ask(right, matching.labels, node)
        elif str(node.op) != "or" and left.ever != right.ever:
            raise Wrong(f"the sides never match, {sorted(left.ever ^ right.ever)} differ: {node.prettify()}")
        if str(node.op) == "or":
            return Labels(left.always & right.always, left.ever | right.ever)
        return left

    def _called(self, node: Any) -> Labels:
        name = node.func.name
        arguments = list(node.args)
        if name == "histogram_quantile":
            inner = self._labels(arguments[1])
            _ask(inner, ["le"], node)
            return Labels(inner.always - {"le"}, inner.ever - {"le"})
        if name == "label_replace":
            inner, added = self._labels(arguments[0]), arguments[1].val
            return Labels(inner.always | {added}, inner.ever | {added})
        if name in {"vector", "absent"}:
            if name == "absent":
                self._labels(arguments[0])
            return _NONE
        if name in _KEEP:
            return self._labels(arguments[0])
        raise Wrong(f"nobody knows what {name}() does to labels")


_NONE = Labels(frozenset(), frozenset())
_SCALAR = Labels(frozenset(), frozenset())
"""A number, which goes with anything."""
_KEEP = frozenset(
    {"rate", "increase", "clamp_min", "sum_over_time", "max_over_time", "avg_over_time", "last_over_time"}
)


def _present(matcher: Any) -> bool:
    """Whether a matcher lets only series with that label through."""
    return matcher.op == ql.MatchOp.Equal and matcher.value != ""


def _ask(labels: Labels, wanted: Iterable[str], node: Any) -> None:
    missing = set(wanted) - labels.ever
    if missing:
        raise Wrong(f"no label {', '.join(sorted(missing))} in {node.prettify()}")
