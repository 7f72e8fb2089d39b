"""The Dockerfile: a linter's verdict, and that what it copies, starts and names is there. No engine builds it here."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from chokaq.cli.program import build

from .files import ROOT
from .manifests import workloads

DOCKERFILE = ROOT / "Dockerfile"


class Stage:
    """One stage: its name, what it begins with, and its instructions."""

    def __init__(self, base: str, name: str) -> None:
        self.base, self.name = base, name
        self.instructions: list[tuple[str, str]] = []

    def all(self, word: str) -> list[str]:
        """The arguments of every such instruction."""
        return [rest for found, rest in self.instructions if found == word]


def stages() -> dict[str, Stage]:
    """Of the Dockerfile, by name; what stands before the first is ``."""
    text = re.sub(
        r"\\\n\s*", "", "\n".join(line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#"))
    )
    found = {"": Stage("", "")}
    stage = found[""]
    for line in filter(None, text.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stage = found[name or "last"] = Stage(base, name)
        else:
            stage.instructions.append((word, rest))
    return found


def hadolint() -> str:
    """The linter, beside the interpreter or on the path."""
    found = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if found is None:
        pytest.skip("hadolint is not installed (the extra chokaq[test] brings it)")
    return found


def test_the_linter_finds_nothing() -> None:
    done = subprocess.run([hadolint(), str(DOCKERFILE)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_linter_would_find_a_root_user_and_a_loose_tag(tmp_path: Path) -> None:
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM python:latest\nUSER root\nRUN cd /tmp && pip install chokaq\n")
    done = subprocess.run([hadolint(), str(wrong)], capture_output=True, text=True, check=False, timeout=60)
    assert {"DL3007", "DL3002", "DL3042"} <= set(re.findall(r"DL\d+", done.stdout))


def test_without_a_target_the_runtime_is_built() -> None:
    found = stages()
    assert list(found)[-1] == "last"
    assert found["last"].base == "runtime"
    assert found["last"].instructions == []


def test_every_stage_begins_with_one_interpreter_that_the_package_allows_and_the_tests_run_on() -> None:
    found = stages()
    [argument] = [rest for rest in found[""].all("ARG") if rest.startswith("PYTHON=")]
    version = re.match(r"PYTHON=(\d+)\.(\d+)-slim-bookworm$", argument)
    assert version is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["requires-python"] == f">={version[1]}.{version[2]}"
    bases = {stage.base for name, stage in found.items() if name}
    assert bases == {"python:${PYTHON}", "system", "runtime"}


def test_what_is_copied_exists_and_is_not_ignored_and_suffices_to_build_the_package() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignored[0] == "*"
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {source for rest in stages()["build"].all("COPY") for source in rest.split()[:-1]}
    assert copied <= kept
    assert all((ROOT / name).exists() for name in kept)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {
        *wheel["packages"],
        *wheel["force-include"],
        project["project"]["readme"],
        *project["project"]["license-files"],
    }
    assert wanted | {"pyproject.toml"} <= copied
    assert "tests" in kept  # the target `contract` runs them


def test_it_runs_as_a_user_without_rights_under_a_folder_of_its_own() -> None:
    runtime = stages()["runtime"]
    [user] = runtime.all("USER")
    assert user == "10001:10001"
    assert stages()["trial"].all("USER")[-1] == user
    [install] = runtime.all("RUN")
    assert "useradd --uid 10001 --gid 10001" in install
    assert "--mode=0700 /run/chokaq" in install
    assert "XDG_RUNTIME_DIR=/run/chokaq" in runtime.all("ENV")[0]


def test_what_it_starts_and_its_health_check_are_commands() -> None:
    runtime = stages()["runtime"]
    [entry] = map(json.loads, runtime.all("ENTRYPOINT"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(entry) <= set(project["project"]["scripts"])
    [command] = map(json.loads, runtime.all("CMD"))
    [check] = [json.loads(rest.partition(" CMD ")[2]) for rest in runtime.all("HEALTHCHECK")]
    assert check[:1] == entry
    for arguments in (command, check[1:]):
        assert CliRunner().invoke(build(), [*arguments, "--help"]).exit_code == 0
    [stop] = runtime.all("STOPSIGNAL")
    assert stop == "SIGTERM"


def test_it_names_the_ports_that_the_manifests_use() -> None:
    [ports] = stages()["runtime"].all("EXPOSE")
    assert set(map(int, ports.split())) == {port for each in workloads() for port in each.ports.values()}


def test_nobody_accepts_a_licence_unasked() -> None:
    build = stages()["build"]
    assert 'ACCEPT_EULA=""' in build.all("ARG")
    assert build.all("RUN")[0].startswith('test "${ACCEPT_EULA}" = Y ')


def test_it_brings_the_driver_that_the_tests_use_and_what_that_needs_of_the_system() -> None:
    found = stages()
    assert '".[odbc]"' in found["build"].all("RUN")[1]
    [installed] = found["system"].all("RUN")
    for line in (ROOT / ".ci" / "run").read_text().splitlines():
        if line.startswith("apt-get install"):
            assert {"libgssapi-krb5-2", "libodbc2", "libodbcinst2"} <= set(line.split()) & set(installed.split())
            break
    else:
        raise AssertionError("the tests' own machine installs nothing")
