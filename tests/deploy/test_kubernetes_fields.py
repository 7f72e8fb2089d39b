"""Objects of other projects: only fields that their published definitions have, with values of the kind they want.

Nothing here downloads those definitions; what they allow is written down, for the parts that our objects use:

* ServiceMonitor and PrometheusRule: monitoring.coreos.com/v1, prometheus-operator/prometheus-operator at 6adcebc (August 2026),
  example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml and …_prometheusrules.yaml.
* ScaledObject and TriggerAuthentication: keda.sh/v1alpha1, kedacore/keda at 8b4f083 (August 2026), config/crd/bases/keda.sh_*.yaml.
  The mssql trigger's metadata: pkg/scalers/mssql_scaler.go, and kedacore/keda-docs, content/docs/2.18/scalers/mssql.md.
  `fallback.behavior` is there from KEDA 2.17 on.
"""

import re
from typing import Any

import pytest

from .manifests import Object, of_kind

DURATION = re.compile(r"(\d+(ms|[ywdhms]))+")
SELECTOR = {"matchLabels": dict, "matchExpressions": list}
POLICIES = {
    "stabilizationWindowSeconds": int,
    "selectPolicy": str,
    "policies": [{"type": str, "value": int, "periodSeconds": int}],
}

SERVICE_MONITOR: dict[str, Any] = {
    "selector": SELECTOR,
    "namespaceSelector": {"any": bool, "matchNames": list},
    "jobLabel": str,
    "targetLabels": list,
    "podTargetLabels": list,
    "sampleLimit": int,
    "targetLimit": int,
    "labelLimit": int,
    "scrapeProtocols": list,
    "endpoints": [
        {
            "port": str,
            "targetPort": (int, str),
            "path": str,
            "scheme": {"http", "https", "HTTP", "HTTPS"},
            "params": dict,
            "interval": DURATION,
            "scrapeTimeout": DURATION,
            "honorLabels": bool,
            "honorTimestamps": bool,
            "followRedirects": bool,
            "filterRunning": bool,
            "relabelings": list,
            "metricRelabelings": list,
        }
    ],
}
PROMETHEUS_RULE: dict[str, Any] = {
    "groups": [
        {
            "name": str,
            "interval": DURATION,
            "query_offset": DURATION,
            "limit": int,
            "partial_response_strategy": str,
            "labels": dict,
            "rules": [
                {
                    "record": str,
                    "alert": str,
                    "expr": (str, int),
                    "for": DURATION,
                    "keep_firing_for": DURATION,
                    "labels": dict,
                    "annotations": dict,
                }
            ],
        }
    ]
}
SCALED_OBJECT: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": str, "kind": str, "name": str, "envSourceContainerName": str},
    "pollingInterval": int,
    "cooldownPeriod": int,
    "initialCooldownPeriod": int,
    "idleReplicaCount": int,
    "minReplicaCount": int,
    "maxReplicaCount": int,
    "fallback": {
        "failureThreshold": int,
        "replicas": int,
        "behavior": {
            "static",
            "currentReplicas",
            "currentReplicasIfHigher",
            "currentReplicasIfLower",
            "scalingModifiers",
        },
    },
    "advanced": {
        "restoreToOriginalReplicaCount": bool,
        "horizontalPodAutoscalerConfig": {"name": str, "behavior": {"scaleUp": POLICIES, "scaleDown": POLICIES}},
        "scalingModifiers": {
            "formula": str,
            "target": str,
            "activationTarget": str,
            "metricType": {"AverageValue", "Value"},
        },
    },
    "triggers": [
        {
            "type": {"mssql"},
            "name": str,
            "metricType": {"AverageValue", "Value"},
            "useCachedMetrics": bool,
            "authenticationRef": {"name": str, "kind": {"TriggerAuthentication", "ClusterTriggerAuthentication"}},
            # Every value of a trigger's metadata is a string.
            "metadata": {
                "connectionStringFromEnv": str,
                "username": str,
                "passwordFromEnv": str,
                "host": str,
                "port": str,
                "database": str,
                "query": str,
                "targetValue": str,
                "activationTargetValue": str,
            },
        }
    ],
}
TRIGGER_AUTHENTICATION: dict[str, Any] = {
    "secretTargetRef": [
        {"parameter": {"connectionString", "username", "password", "host", "port", "database"}, "name": str, "key": str}
    ],
}
REQUIRED = {
    "ServiceMonitor": ("selector", "endpoints"),
    "PrometheusRule": ("groups.name", "groups.rules.expr"),
    "ScaledObject": ("scaleTargetRef", "scaleTargetRef.name", "triggers", "triggers.type", "triggers.metadata"),
    "TriggerAuthentication": ("secretTargetRef.parameter", "secretTargetRef.name", "secretTargetRef.key"),
}
ALLOWED = {
    "ServiceMonitor": SERVICE_MONITOR,
    "PrometheusRule": PROMETHEUS_RULE,
    "ScaledObject": SCALED_OBJECT,
    "TriggerAuthentication": TRIGGER_AUTHENTICATION,
}
VERSIONS = {
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
    "ScaledObject": "keda.sh/v1alpha1",
    "TriggerAuthentication": "keda.sh/v1alpha1",
}


def faults(value: Any, allowed: Any, where: str = "spec") -> list[str]:
    """What does not fit, as `path: why`."""
    if isinstance(allowed, dict) and isinstance(value, dict):
        unknown = [f"{where}.{key}: no such field" for key in value if key not in allowed]
        return unknown + [
            fault for key in value if key in allowed for fault in faults(value[key], allowed[key], f"{where}.{key}")
        ]
    if isinstance(allowed, list) and isinstance(value, list):
        return [fault for number, one in enumerate(value) for fault in faults(one, allowed[0], f"{where}[{number}]")]
    if isinstance(allowed, set):
        return [] if value in allowed else [f"{where}: {value!r} is none of {sorted(allowed)}"]
    if isinstance(allowed, re.Pattern):
        return [] if isinstance(value, str) and allowed.fullmatch(value) else [f"{where}: {value!r} is no duration"]
    if (
        isinstance(allowed, dict | list)
        or not isinstance(value, allowed)
        or (isinstance(value, bool) and allowed is int)
    ):
        return [f"{where}: {value!r} is of the wrong type"]
    return []


def has(value: Any, path: str) -> bool:
    """Whether a path of fields is there, in every element of the lists it passes."""
    head, _, rest = path.partition(".")
    if isinstance(value, list):
        return bool(value) and all(has(one, path) for one in value)
    return head in value and (not rest or has(value[head], rest))


@pytest.mark.parametrize("found", of_kind(*ALLOWED), ids=str)
def test_objects_of_other_projects_have_their_published_fields(found: Object) -> None:
    assert found.data["apiVersion"] == VERSIONS[found.kind]
    assert set(found.data) == {"apiVersion", "kind", "metadata", "spec"}
    assert faults(found.spec, ALLOWED[found.kind]) == []
    for path in REQUIRED[found.kind]:
        assert has(found.spec, path), path


def test_all_these_kinds_are_there_and_a_fault_would_be_found() -> None:
    assert {found.kind for found in of_kind(*ALLOWED)} == set(ALLOWED)
    wrong = {"endpoints": [{"port": "probes", "intervall": "15s", "interval": "soon", "honorLabels": 1}]}
    assert faults(wrong, SERVICE_MONITOR) == [
        "spec.endpoints[0].intervall: no such field",
        "spec.endpoints[0].interval: 'soon' is no duration",
        "spec.endpoints[0].honorLabels: 1 is of the wrong type",
    ]
    assert faults({"triggers": [{"type": "mssql", "metadata": {"targetValue": 1}}]}, SCALED_OBJECT) == [
        "spec.triggers[0].metadata.targetValue: 1 is of the wrong type"
    ]


def test_the_scaler_signs_in_with_a_secret_of_the_example() -> None:
    [authentication] = of_kind("TriggerAuthentication")
    [scaler] = of_kind("ScaledObject")
    assert {trigger["authenticationRef"]["name"] for trigger in scaler.spec["triggers"]} == {authentication.name}
    for reference in authentication.spec["secretTargetRef"]:
        [found] = [each for each in of_kind("Secret") if each.name == reference["name"]]
        assert reference["key"] in found.data["stringData"]


def test_prometheus_reads_the_workers_probe_port() -> None:
    [monitor] = of_kind("ServiceMonitor")
    [endpoint] = monitor.spec["endpoints"]
    [service] = [
        found
        for found in of_kind("Service")
        if monitor.spec["selector"]["matchLabels"].items() <= found.data["metadata"]["labels"].items()
    ]
    assert service.name == "chokaq-worker"
    assert endpoint["port"] in {port["name"] for port in service.spec["ports"]}
    assert endpoint["path"] == "/metrics"
    # The rules know a worker by a job that is called so.
    assert service.data["metadata"]["labels"][monitor.spec["jobLabel"]] == "chokaq"
