"""The unit files: systemd's own verdict on them, and that what they say of the program is true."""

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chokaq.cli.exits import Exit
from chokaq.cli.program import build
from chokaq.config import load_settings
from chokaq.config.checks import check_settings
from chokaq.supervisor.exits import ProgramExit

from .units import PROGRAM, Unit, hand_out, units

THRESHOLD = 25
"""Highest exposure allowed, in tenths (systemd-analyze security --threshold)."""
MARGIN = 10
"""Seconds between the end of a drain and the moment systemd kills, at least."""
NO_CREDENTIALS = 243
"""systemd's own exit code for a credential that cannot be loaded (systemd.exec(5), EXIT_CREDENTIALS)."""
WORKERS = ("chokaq.service", "chokaq@.service")

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian's package systemd)"
)


@pytest.fixture(params=units(), ids=lambda unit: unit.name)
def unit(request: pytest.FixtureRequest) -> Unit:
    """Every unit file, one after the other."""
    found: Unit = request.param
    return found


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A root folder with the units, the program they start, and the targets they name."""
    etc = tmp_path / "etc/systemd/system"
    etc.mkdir(parents=True)
    for each in units():
        shutil.copy(each.path, etc)
    for target in ("sysinit", "basic", "shutdown", "multi-user", "network-online"):
        (etc / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
    for name in (PROGRAM, "/bin/kill"):
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """systemd-analyze, with stderr in stdout."""
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60)


@needs_systemd
def test_systemd_finds_nothing_wrong(unit: Unit, host: Path) -> None:
    done = analyze("verify", f"--root={host}", unit.name.replace("@.", "@emails."))
    assert (done.returncode, done.stdout) == (0, "")


@needs_systemd
def test_systemd_would_find_a_misspelt_setting(host: Path) -> None:
    path = host / "etc/systemd/system/chokaq.service"
    path.write_text(path.read_text().replace("WatchdogSec=", "WatchDogSec="))
    assert "Unknown key 'WatchDogSec'" in analyze("verify", f"--root={host}", "chokaq.service").stdout


@needs_systemd
def test_the_exposure_of_every_unit_is_low(unit: Unit) -> None:
    done = analyze("security", "--offline=true", f"--threshold={THRESHOLD}", str(unit.path))
    assert done.returncode == 0, done.stdout


@needs_systemd
def test_a_unit_without_its_sandbox_would_be_refused(tmp_path: Path) -> None:
    bare = tmp_path / "bare.service"
    bare.write_text(f"[Service]\nUser=chokaq\nExecStart={PROGRAM} worker\n")
    assert analyze("security", "--offline=true", f"--threshold={THRESHOLD}", str(bare)).returncode != 0


def test_the_template_differs_from_the_unit_in_its_configuration_alone() -> None:
    single, template = (Unit(name) for name in WORKERS)
    told = template.path.read_text().replace(" %i\n", "\n").replace("%i.yaml", "chokaq.yaml")
    settings = [line for line in told.splitlines() if not line.startswith("#")]
    assert settings == [line for line in single.path.read_text().splitlines() if not line.startswith("#")]


def test_all_units_have_the_same_sandbox() -> None:
    sandboxes = {
        unit.path.read_text().partition("NoNewPrivileges=")[2].partition("\n\n")[0].rstrip() for unit in units()
    }
    assert len(sandboxes) == 1


def test_what_a_unit_starts_is_a_command_with_these_options(unit: Unit) -> None:
    # An option that is not known is refused before help is given.
    help_ = CliRunner().invoke(build(), [*unit.arguments, "--help"])
    assert help_.exit_code == 0, help_.output
    assert CliRunner().invoke(build(), [*unit.arguments, "--no-such-option", "--help"]).exit_code == Exit.USAGE


def test_the_sample_configuration_loads_with_the_credentials_of_its_unit(unit: Unit, tmp_path: Path) -> None:
    environ = {"CREDENTIALS_DIRECTORY": str(hand_out(unit, tmp_path))}
    settings = load_settings(unit.config, environ)
    assert "the-database-password-of-this-test" in settings.database.url
    assert settings.production
    assert check_settings(settings) == []
    used = {name for name in unit.credentials if f"$CREDENTIALS_DIRECTORY/{name}" in unit.config.read_text()}
    assert used == set(unit.credentials)


@pytest.mark.parametrize("name", WORKERS)
def test_the_drain_ends_before_systemd_kills(name: str, tmp_path: Path) -> None:
    unit = Unit(name)
    settings = load_settings(unit.config, {"CREDENTIALS_DIRECTORY": str(hand_out(unit, tmp_path))})
    assert unit.seconds("TimeoutStopSec") >= settings.supervisor.shutdown_grace + MARGIN


@pytest.mark.parametrize("name", WORKERS)
def test_only_an_end_that_a_restart_would_repeat_keeps_it_down(name: str) -> None:
    kept_down = {int(code) for code in Unit(name).one("RestartPreventExitStatus").split()}
    assert kept_down == {Exit.USAGE, Exit.CONFIGURATION, ProgramExit.BOOT_FAILED, NO_CREDENTIALS}
    assert Unit(name).one("Restart") == "on-failure"


@pytest.mark.parametrize("name", WORKERS)
def test_the_supervisor_is_the_one_that_talks_to_systemd_and_ends_its_children(name: str) -> None:
    unit = Unit(name)
    assert (unit.one("Type"), unit.one("NotifyAccess"), unit.one("KillMode")) == ("notify", "main", "mixed")
    assert unit.one("OOMPolicy") == "continue"
    assert unit.one("ExecReload") == "/bin/kill -HUP $MAINPID"
    # The loop turns once a second at least, and beats at half the interval.
    assert unit.seconds("WatchdogSec") >= 10
