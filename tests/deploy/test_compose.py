"""The trial on one machine: a valid compose file without a loose end, and a configuration that the program accepts."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from chokaq.config import load_settings
from chokaq.config.settings import Settings
from chokaq.deck.passwords import is_password
from chokaq.store.sqlserver.connecting import connection_string
from chokaq.store.url import DatabaseUrl
from tests.contract import proof
from tests.support import stores

from .files import DEPLOY, ROOT, document
from .test_image import stages

FOLDER = DEPLOY / "compose"
FILE = FOLDER / "compose.yaml"
MARGIN = 10
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
PASSWORD = "Trial-0nly-on-this-machine"


def compose() -> dict[str, Any]:
    """The file with its variables' defaults filled in."""
    text = _VARIABLE.sub(lambda match: match[2] or "", FILE.read_text(encoding="utf-8"))
    found: dict[str, Any] = yaml.safe_load(text.replace("$$", "$"))
    return found


SERVICES: dict[str, Any] = compose()["services"]


def settings() -> Settings:
    """What the program makes of the trial's chokaq.yaml."""
    return load_settings(FOLDER / "chokaq.yaml", SERVICES["worker"]["environment"])


def check(path: Path) -> subprocess.CompletedProcess[str]:
    """Held against the compose specification's own schema."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_file_follows_the_compose_specification() -> None:
    done = check(FILE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_misspelt_key_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(FILE.read_text().replace("stop_grace_period", "stop_grace"))
    assert check(wrong).returncode != 0


@pytest.mark.parametrize("name", SERVICES)
def test_every_reference_of_a_service_leads_somewhere(name: str) -> None:
    service = SERVICES[name]
    for needed, how in service.get("depends_on", {}).items():
        waits_for_health = how["condition"] == "service_healthy"
        assert not waits_for_health or "healthcheck" in SERVICES[needed]
    for mount in service.get("volumes", []):
        source = mount.split(":")[0]
        assert (FOLDER / source).exists() if source.startswith(".") else source in compose()["volumes"]
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "only this machine may reach the trial"
    assert re.fullmatch(r"[\w./-]+:[\w.-]+", service["image"])
    if "build" in service:
        assert (FOLDER / service["build"]["context"]).resolve() == ROOT
        assert service["build"]["target"] in stages()
        assert {f"{argument}=" for argument in service["build"]["args"]} <= {
            f"{rest.partition('=')[0]}=" for stage in stages().values() for rest in stage.all("ARG")
        }


def test_nobody_accepts_a_licence_unasked() -> None:
    assert SERVICES["sqlserver"]["environment"]["ACCEPT_EULA"] == "N"
    assert SERVICES["worker"]["build"]["args"]["ACCEPT_EULA"] == "N"


def test_the_program_accepts_the_configuration() -> None:
    found = settings()
    url = DatabaseUrl.parse(found.database.url)
    assert (url.host, url.port, url.user, url.password) == ("sqlserver", 1433, "sa", PASSWORD)
    assert SERVICES["sqlserver"]["environment"]["MSSQL_SA_PASSWORD"] == PASSWORD
    assert f"CREATE DATABASE {url.database}" in " ".join(SERVICES["database"]["command"])
    assert "TrustServerCertificate=yes" in connection_string(url, "ODBC Driver 18 for SQL Server")
    assert SERVICES["worker"]["environment"]["CHOKAQ_CONFIG"] in SERVICES["worker"]["volumes"][0]
    assert is_password("trial", found.deck.users["trial"].password_hash)


def test_docker_waits_for_the_drain() -> None:
    period = SERVICES["worker"]["stop_grace_period"]
    assert int(period.removesuffix("s")) >= settings().supervisor.shutdown_grace + MARGIN


def test_ports_are_the_configuration_s() -> None:
    found = settings()
    assert SERVICES["deck"]["ports"] == [f"127.0.0.1:{found.deck.port}:{found.deck.port}"]
    assert f"127.0.0.1:{found.deck.port}/login" in SERVICES["deck"]["healthcheck"]["test"][-1]
    [scrape] = document(FOLDER / "prometheus.yml")["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": [f"worker:{found.probes.port}"]}]


def test_the_shop_talks_to_services_of_the_trial() -> None:
    text = (ROOT / "examples/shop/jobs.py").read_text()
    environment = SERVICES["worker"]["environment"]
    for name in environment:
        if name.startswith("SHOP_"):
            assert re.search(rf"environ\.get\(['\"]{name}['\"]", text)
    for name in ("SHOP_SMTP", "SHOP_HTTP"):
        assert environment[name].partition(":")[0] in SERVICES
    [folder] = re.findall(r"--group=chokaq (/\w+)", stages()["trial"].all("RUN")[0])
    assert environment["SHOP_REPORTS"] == folder
    assert f"reports:{folder}" in SERVICES["worker"]["volumes"]


def test_one_command_runs_the_contract_and_brings_its_proof_home() -> None:
    service = SERVICES["contract"]
    url = service["environment"][stores.VARIABLE]
    parts = DatabaseUrl.parse(url)
    assert (parts.host, parts.database, parts.options["encrypt"]) == ("sqlserver", "chokaq_test", "yes")
    assert urlsplit(url).password == PASSWORD
    source, _, target = service["volumes"][0].partition(":")
    assert (FOLDER / source).resolve() == proof.HERE
    workdir = stages()["contract"].all("WORKDIR")[-1]
    assert target == f"{workdir}/{proof.HERE.relative_to(ROOT)}"
    # The whole of it, or no proof is written.
    assert stages()["contract"].all("CMD") == ['["tests/contract"]']
    assert service["profiles"] == ["contract"]


def test_the_demo_s_database_is_the_trial_s() -> None:
    url = DatabaseUrl.parse(SERVICES["demo"]["command"][-1])
    assert url == DatabaseUrl.parse(settings().database.url)
