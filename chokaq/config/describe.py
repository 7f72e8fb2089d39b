"""Finds out what the application registers without importing it here: a short-lived process does, and leaves a description.

The parent of the children must neither run the application's code nor wait for it. So a description can be waited for (a
command, a start), or be left to whoever reaps the process (a supervisor that goes on meanwhile).
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from chokaq.config.errors import ConfigError, Problem
from chokaq.config.settings import Settings

if TYPE_CHECKING:
    from chokaq.config.application import AppFacts

IMPORT_SECONDS = 120.0
"""An application that takes longer to import than this is taken for one that hangs."""


class ApplicationError(ConfigError):
    """The application cannot be imported, or registers what cannot be."""


class Description:
    """An application being imported and described by a process of its own, from now on."""

    def __init__(self, settings: Settings) -> None:
        """`settings.app` is set. Raises ApplicationError when the host gives no process."""
        assert settings.app is not None
        self._app = settings.app
        self._source = None if settings.source is None else str(settings.source)
        command = [sys.executable, "-m", "chokaq.config.application", settings.app]
        if settings.source is not None:
            command.append(str(settings.source.parent))
        # A file, not a pipe: nobody has to be there to read while it is written.
        self._answer = _unnamed_file()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._answer,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)},
                # A Ctrl-C is meant for whoever waits for the answer.
                process_group=0,
            )
        except OSError as error:
            self._answer.close()
            raise self._error(f"no process could be started to import {self._app}: {error}") from None

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def wait(self, seconds: float = IMPORT_SECONDS) -> "AppFacts":
        """What the application registers. Raises ApplicationError when it cannot be imported, or not within `seconds`."""
        try:
            code = self._process.wait(seconds)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            self._answer.close()
            if isinstance(error, subprocess.TimeoutExpired):
                raise self.too_slow(seconds) from None
            raise
        return self.ended(code)

    def ended(self, code: int) -> "AppFacts":
        """The same, once the process has been reaped; `code`: its exit code, or the signal's number below zero."""
        from chokaq.config.application import AppFacts

        self._process.returncode = code
        with self._answer:
            self._answer.seek(0)
            answer = self._answer.read()
        try:
            facts = msgspec.json.decode(answer, type=AppFacts)
        except msgspec.DecodeError:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise self._error(f"importing {self._app} ended the process with {how}") from None
        if facts.error is not None:
            raise self._error(facts.error)
        return facts

    def abandon(self) -> None:
        """Kill the process; it is reaped by whoever reaps."""
        if self._process.returncode is None:
            self._process.kill()
            # For its own destructor: nobody waits for it through this object.
            self._process.returncode = -9
        self._answer.close()

    def too_slow(self, seconds: float) -> ApplicationError:
        """The error of one that was given up after so many seconds."""
        return self._error(f"importing {self._app} took longer than {seconds:g} s")

    def _error(self, message: str) -> ApplicationError:
        return ApplicationError([Problem("app", message)], self._source)


def describe_app(settings: Settings) -> "AppFacts":
    """What the application registers, waited for. Raises ApplicationError when it cannot be imported."""
    return Description(settings).wait()


def _unnamed_file() -> IO[bytes]:
    if sys.platform == "linux":
        # In memory: a worker may run where no folder can be written.
        return os.fdopen(os.memfd_create("chokaq-application"), "r+b")
    import tempfile

    return tempfile.TemporaryFile()
