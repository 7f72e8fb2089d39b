"""The trial's Prometheus runs the shipped rules, and its Grafana shows the shipped dashboard."""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from .files import DEPLOY, document
from .prometheus import RULES, run
from .test_compose import FOLDER, SERVICES
from .test_dashboard import FILE as DASHBOARD


def mounts(service: str) -> dict[str, str]:
    """Where a service finds files of ours: the place inside → the file here."""
    found = [mount.split(":") for mount in SERVICES[service]["volumes"]]
    return {inside: str((FOLDER / here).resolve()) for here, inside, _ in found}


def test_prometheus_reads_the_rules_where_they_are_mounted() -> None:
    inside = mounts("prometheus")
    config = inside["/etc/prometheus/prometheus.yml"]
    told = run("promtool", "check", "config", "--syntax-only", config)
    assert told.returncode == 0, told.stdout + told.stderr
    [pattern] = document(FOLDER / "prometheus.yml")["rule_files"]
    assert inside[str(PurePosixPath(pattern).parent)] == str(RULES[0].parent)


def test_grafana_finds_its_data_source_and_its_dashboard() -> None:
    inside = mounts("grafana")
    assert inside["/etc/grafana/provisioning/datasources/chokaq.yaml"] == str(FOLDER / "grafana" / "datasources.yaml")
    assert inside["/etc/grafana/provisioning/dashboards/chokaq.yaml"] == str(FOLDER / "grafana" / "dashboards.yaml")
    [source] = document(FOLDER / "grafana" / "datasources.yaml")["datasources"]
    url = urlsplit(source["url"])
    assert url.hostname in SERVICES
    assert SERVICES["prometheus"]["ports"] == [f"127.0.0.1:{url.port}:{url.port}"]
    assert source["type"] == "prometheus"
    [provider] = document(FOLDER / "grafana" / "dashboards.yaml")["providers"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert str(PurePosixPath(home).parent) == provider["options"]["path"]
    assert inside[home] == str(DASHBOARD.resolve())
    assert DASHBOARD.is_relative_to(DEPLOY)
