"""systemd unit files, as far as the tests need them: settings by section, in order, repeated ones kept."""

import re
from pathlib import Path

from .files import DEPLOY

FOLDER = DEPLOY / "systemd"
PROGRAM = "/opt/chokaq/bin/chokaq"
_SPAN = re.compile(r"(\d+)(s|min)?")
_SECONDS = {None: 1, "s": 1, "min": 60}


class Unit:
    """One unit file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = FOLDER / name
        self.sections: dict[str, dict[str, list[str]]] = {}
        section: dict[str, list[str]] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                section = self.sections.setdefault(line.strip("[]"), {})
            elif line and not line.startswith(("#", ";")):
                key, _, value = line.partition("=")
                section.setdefault(key, []).append(value)

    @property
    def service(self) -> dict[str, list[str]]:
        """The section of the process itself."""
        return self.sections["Service"]

    def one(self, key: str) -> str:
        """A setting of [Service] that is given once."""
        [value] = self.service[key]
        return value

    def seconds(self, key: str) -> int:
        """A time span, as these units write them."""
        match = _SPAN.fullmatch(self.one(key))
        assert match is not None, f"{self.name}: {key}={self.one(key)}"
        return int(match[1]) * _SECONDS[match[2]]

    @property
    def arguments(self) -> list[str]:
        """What the program is started with."""
        program, *arguments = self.one("ExecStart").split()
        assert program == PROGRAM
        return arguments

    @property
    def config(self) -> Path:
        """The sample of the YAML file it names, for `NAME` where the unit is a template."""
        name = Path(self.arguments[self.arguments.index("--config") + 1]).name
        return FOLDER / name.replace("%i", "chokaq")

    @property
    def credentials(self) -> list[str]:
        """Names of the files in $CREDENTIALS_DIRECTORY."""
        return [value.partition(":")[0] for value in self.service.get("LoadCredential", [])]

    def environment(self, runtime: Path) -> dict[str, str]:
        """The variables it sets, with `%t` at another place."""
        pairs = (value.partition("=") for value in self.service.get("Environment", []))
        return {key: value.replace("%t", str(runtime)) for key, _, value in pairs}


def units() -> list[Unit]:
    """Every unit that ships."""
    return [Unit(path.name) for path in sorted(FOLDER.glob("*.service"))]


def hand_out(unit: Unit, folder: Path) -> Path:
    """Its credentials as files, each with its own text; returns their folder."""
    credentials = folder / "credentials"
    credentials.mkdir()
    for name in unit.credentials:
        (credentials / name).write_text(f"the-{name}-of-this-test-is-long-enough\n")
    return credentials
