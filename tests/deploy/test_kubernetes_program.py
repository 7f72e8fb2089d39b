"""The manifests against the program they run: its configuration, ports, drain, memory, metric and procedure."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chokaq.config.checks import check_settings
from chokaq.observe.metrics.catalogue import CATALOGUE

from .files import ROOT
from .manifests import Workload, in_bytes, of_kind, settings_of, workload, workloads

MARGIN = 10
"""Seconds between the end of a drain and the moment the kubelet kills, at least."""
BASE = 200 * 1024**2
"""Bytes for the supervisor, maintenance and the probes' process, generously."""
MAXDOP = Path(sys.executable).with_name("maxdop")
"""The T-SQL parser."""


def slept(found: Workload) -> int:
    """Seconds that preStop takes of the grace."""
    command = found.container["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep"
    return int(command[1])


@pytest.mark.parametrize("each", workloads(), ids=str)
def test_the_program_accepts_the_configuration_of_every_pod(each: Workload, tmp_path: Path) -> None:
    settings = settings_of(each, tmp_path)
    assert settings.production
    assert "not-a-real-password" in settings.database.url
    assert check_settings(settings) == []


def test_the_probe_port_is_the_configuration_s(tmp_path: Path) -> None:
    worker = workload("chokaq-worker")
    settings = settings_of(worker, tmp_path)
    assert worker.ports == {"probes": settings.probes.port}
    assert settings.probes.host == "0.0.0.0"
    [service] = [found for found in of_kind("Service") if found.name == "chokaq-worker"]
    assert [port["port"] for port in service.spec["ports"]] == [settings.probes.port]


def test_the_deck_s_port_is_the_configuration_s(tmp_path: Path) -> None:
    deck = workload("chokaq-deck")
    settings = settings_of(deck, tmp_path)
    assert deck.ports == {"deck": settings.deck.port}
    assert settings.deck.host == "0.0.0.0"


def test_the_grace_is_longer_than_the_drain(tmp_path: Path) -> None:
    from chokaq.deck.serving import GRACE

    worker, deck = workload("chokaq-worker"), workload("chokaq-deck")
    drain = settings_of(worker, tmp_path).supervisor.shutdown_grace
    assert worker.pod["terminationGracePeriodSeconds"] >= slept(worker) + drain + MARGIN
    assert deck.pod["terminationGracePeriodSeconds"] >= slept(deck) + GRACE + MARGIN


def test_children_are_recycled_before_the_kernel_ends_the_container(tmp_path: Path) -> None:
    worker = workload("chokaq-worker")
    queues = settings_of(worker, tmp_path).queues.values()
    assert all(queue.max_memory for queue in queues)
    memory = [queue.max_memory or 0 for queue in queues for _ in range(queue.processes)]
    in_memory = [volume["sizeLimit"] for volume in worker.volume("emptyDir") if volume.get("medium") == "Memory"]
    limit = worker.container["resources"]["limits"]["memory"]
    # One more: a replacement is up before the child it replaces drains.
    assert sum(memory) + max(memory) + sum(map(in_bytes, in_memory)) + BASE <= in_bytes(limit)


def test_scaling_by_lag_asks_for_a_metric_that_the_leader_exports(tmp_path: Path) -> None:
    queues = settings_of(workload("chokaq-worker"), tmp_path).queues
    [scaler] = of_kind("HorizontalPodAutoscaler")
    known = {instrument.name: instrument for instrument in CATALOGUE}
    for metric in scaler.spec["metrics"]:
        asked = metric["external"]["metric"]
        instrument = known[asked["name"]]
        assert instrument.kind == "gauge"
        assert set(asked["selector"]["matchLabels"]) == set(instrument.labels)
        assert asked["selector"]["matchLabels"]["queue"] in queues


def test_scaling_by_recommendation_calls_the_procedure_as_it_is(tmp_path: Path) -> None:
    procedure = ROOT / "sql/procedures/GetScaleRecommendation.sql"
    declared = set(
        re.findall(r"^ {4}(@\w+)\s+\w+", procedure.read_text().partition("CREATE OR ALTER PROCEDURE")[2], re.MULTILINE)
    )
    queues = settings_of(workload("chokaq-worker"), tmp_path).queues
    [scaler] = of_kind("ScaledObject")
    asked = {}
    for trigger in scaler.spec["triggers"]:
        query = trigger["metadata"]["query"]
        call = re.fullmatch(r"EXEC chokaq\.GetScaleRecommendation (.+)", query)
        assert call is not None, query
        given = dict(part.split(" = ") for part in call[1].split(", "))
        assert set(given) <= declared
        queue = queues[given["@Queue"].strip("'")]
        asked[queue.name] = trigger
        assert trigger["name"] == queue.name
        assert int(given["@ReplicaHandlers"]) == queue.max_workers * queue.processes
        assert int(given.get("@FleetCap", -1)) == (queue.fleet_max_workers or -1)
        assert int(given["@MinReplicas"]) == scaler.spec["minReplicaCount"]
        assert int(given["@MaxReplicas"]) == scaler.spec["maxReplicaCount"]
        # A number of replicas, taken as it is.
        assert (trigger["metricType"], trigger["metadata"]["targetValue"]) == ("AverageValue", "1")
        script = tmp_path / f"{queue.name}.sql"
        script.write_text(f"{query};\n")
        subprocess.run(
            [str(MAXDOP), "--parser-version", "2019", str(script)], check=True, capture_output=True, timeout=60
        )
    assert set(asked) == set(queues)
