"""A supervisor whose children are fakes that obey control files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.support.polling import wait_until
from tests.support.supervised import Event, Program, alive

__all__ = ["PROGRAMS", "Event", "FakeProgram", "Program", "alive", "running", "wait_until", "write_script"]
PROGRAMS = Path(__file__).parent / "programs"


class FakeProgram(Program):
    """A supervisor with fake processes."""

    def __init__(self, folder: Path, config: str, environ: dict[str, str] | None = None) -> None:
        self.config = folder / "chokaq.yaml"
        self.control = folder / "control"
        self.control.mkdir(exist_ok=True)
        self.write_application()
        self.configure(config)
        super().__init__([str(PROGRAMS / "fake_processes.py"), str(self.config), str(self.control)], folder, environ)

    def configure(self, text: str, database: str = "sqlite:///unused.db") -> None:
        """Write the YAML file."""
        self.config.write_text(f"app: fake_shop:app\ndatabase: {database}\n{text}")

    def write_application(self, text: str = "") -> None:
        """The application: only ever described, never run. `text`: more of its code."""
        fresh = self.config.with_name(".fresh")
        fresh.write_text(f"from chokaq import ChokaQ\napp = ChokaQ()\n{text}\n")
        fresh.replace(self.config.with_name("fake_shop.py"))

    def script(self, queue: str, **script: object) -> None:
        """What the queue's children do from now on."""
        write_script(self.control, queue, **script)

    def notices(self) -> list[Event]:
        """What maintenance got, in order of arrival."""
        file = self.control / "notices.jsonl"
        return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def write_script(control: Path, name: str, **script: object) -> None:
    """Put a control file in place whole."""
    control.mkdir(exist_ok=True)
    fresh = control / f".{name}"
    fresh.write_bytes(msgspec.json.encode(script))
    fresh.replace(control / f"{name}.json")


@contextmanager
def running(program: Program) -> Iterator[Program]:
    """Destroy it in the end."""
    try:
        yield program
    finally:
        program.destroy()
