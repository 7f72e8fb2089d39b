"""The run directory of one supervisor: a private folder with a file of figures per living process, and one for all that have ended.

    <pid>-<…>.figures  of a process, written by it alone
    retired.figures    counters and histograms of those that have ended, summed; their gauges are gone
    lock               held by every process of the worker, so that a later one knows which folders nobody uses any more

When a process has been reaped its file is folded into the retired one, which is written anew and put in its place by one rename;
only then the dead one's file is deleted. `retired.figures` names the files that it has taken in and that may still be there. So a
reader needs no lock: it skips what the retired file names, and begins again when a file vanishes under its hands. Nothing counts
twice, after a crash in between neither.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import structlog

from chokaq.observe.metrics.budget import Budget
from chokaq.observe.metrics.catalogue import BY_NAME, Kind
from chokaq.observe.metrics.options import MetricsSettings
from chokaq.observe.metrics.values import Entries, Key, ValueFile, read_values, write_values

_log = structlog.get_logger("chokaq")
PREFIX = "chokaq-metrics-"
RETIRED = "retired.figures"
SUFFIX = ".figures"
_LOCK = "lock"
_ABSORBED = "absorbed"
"""Not a metric: `(absorbed, <file name>)` in the retired file."""
_READ_TRIES = 20


class RunDirectory:
    """As the supervisor holds it, and as its children inherit it."""

    def __init__(self, settings: MetricsSettings, environ: Mapping[str, str] = os.environ) -> None:
        """Make it, and delete those that nobody uses any more. Raises OSError when no folder can be written."""
        self.settings = settings
        parent = _parent(settings, environ)
        _sweep(parent)
        # Under a name that nobody sweeps until it is locked.
        made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}{os.getpid()}-", dir=parent))
        self._lock = os.open(made / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self.path = made.rename(made.with_name(made.name.removeprefix(".")))
        self._owner = os.getpid()
        self._waiting: list[Path] = []

    def open_file(self) -> ValueFile:
        """The file of the calling process. Raises OSError."""
        return ValueFile(self.path / f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}")

    def retire(self, pid: int) -> None:
        """Fold in what a process has left that was just reaped. What fails now is tried again with the next one."""
        self._waiting += [file for file in sorted(self.path.glob(f"{pid}-*{SUFFIX}")) if file not in self._waiting]
        while self._waiting:
            try:
                self._fold(self._waiting[0])
            except (OSError, ValueError) as error:
                _log.warning("metrics_not_folded", file=str(self._waiting[0]), error=str(error))
                return
            self._waiting.pop(0)

    def remove(self) -> None:
        """Delete it all, at the end of the supervisor; in a child nothing happens."""
        if os.getpid() == self._owner:
            os.close(self._lock)
            shutil.rmtree(self.path, ignore_errors=True)

    def _fold(self, file: Path) -> None:
        total, absorbed = read_retired(self.path)
        if file.name not in absorbed:
            budget = Budget(self.settings)
            for key in total:
                budget.admit(BY_NAME[key[0]], key[1:])
            for key, values in read_values(file):
                if BY_NAME[key[0]].kind is not Kind.GAUGE:
                    add_up(total, (key[0], *budget.admit(BY_NAME[key[0]], key[1:])), values)
            left = {name for name in absorbed if (self.path / name).exists()}
            marks: Entries = {(_ABSORBED, name): () for name in (*left, file.name)}
            fresh = self.path / f"{RETIRED}.new"
            write_values(fresh, marks | total)
            fresh.replace(self.path / RETIRED)
        file.unlink(missing_ok=True)


def read_retired(directory: Path) -> tuple[Entries, set[str]]:
    """What ended processes have counted, and the names of the files that are part of it. Raises OSError, ValueError."""
    total: Entries = {}
    absorbed: set[str] = set()
    with contextlib.suppress(FileNotFoundError):
        for key, values in read_values(directory / RETIRED):
            if key[0] == _ABSORBED:
                absorbed.add(key[1])
            else:
                total[key] = values
    return total, absorbed


def read_all(directory: Path) -> Iterator[tuple[Key, tuple[float, ...]]]:
    """Every entry of every process, the ended ones' summed; a key comes as often as processes hold it. Raises OSError, ValueError.

    Counters never go back: a process is counted by its own file or by the retired one, never by neither or both.
    """
    for _ in range(_READ_TRIES):
        with contextlib.suppress(FileNotFoundError):
            names = [file for file in directory.iterdir() if file.suffix == SUFFIX and file.name != RETIRED]
            total, absorbed = read_retired(directory)
            live = [entry for file in names if file.name not in absorbed for entry in read_values(file)]
            return iter([*total.items(), *live])
        if not directory.is_dir():
            break
    raise FileNotFoundError(f"{directory}: the figures of this worker are not there, or change too fast")


def add_up(total: Entries, key: Key, values: tuple[float, ...]) -> None:
    """Add an entry to what stands under its key."""
    before = total.get(key)
    total[key] = values if before is None else tuple(map(float.__add__, before, values))


def _parent(settings: MetricsSettings, environ: Mapping[str, str]) -> Path:
    if settings.directory is not None:
        return Path(settings.directory)
    for name in (environ.get("RUNTIME_DIRECTORY"), environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):
        # systemd may name several, separated by colons.
        folder = Path(name.split(":")[0]) if name else None
        if folder is not None and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return Path(tempfile.gettempdir())


def _sweep(parent: Path) -> None:
    """Delete folders of workers that were killed: ours, and locked by nobody."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
