"""A machine with a real systemd as its first process: a container over a view of this host's files that keeps no change.

Needs root with all its rights, and Debian's package systemd-container. The container has a network of its own (loopback alone) and
control groups of its own, which are removed with it.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tests.support.polling import wait_until

from .files import ROOT
from .units import FOLDER, PROGRAM, units

UNWANTED = ("systemd-networkd-wait-online", "NetworkManager-wait-online", "ifupdown-wait-online", "networking")
"""Services of the host's that would wait for a network that the container does not have."""
BOOT = 60.0
"""Seconds a boot may take."""
_OPT = Path(PROGRAM).parents[1]
_START = f"""#!/bin/sh
export LD_LIBRARY_PATH={_OPT}/python/lib PYTHONPATH={_OPT}/source:{_OPT}/source/examples:{_OPT}/site
exec {_OPT}/python/bin/python3 -m chokaq "$@"
"""
_SPAWN = """
set -e
for group in "$@"; do echo $$ > "$group/cgroup.procs"; done
mount --bind / "$ROOT"
exec systemd-nspawn --quiet --directory="$ROOT" --volatile=overlay --machine="$NAME" --register=no --keep-unit \\
    --private-network --link-journal=no --console=pipe $BINDS --boot $ARGUMENTS
"""


def hindrance() -> str | None:
    """Why no such machine can be had here; None when it can be tried."""
    if not _may_mount():
        return "a container needs root with the capability SYS_ADMIN"
    if shutil.which("systemd-nspawn") is None:
        return "systemd-nspawn is not installed (Debian's package systemd-container)"
    if not any(os.access(group.parent, os.W_OK) for group in _own_groups("any")):
        return "there are no control groups that a systemd could have as its own"
    return None


def _may_mount() -> bool:
    told = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return bool(int(told["CapEff"], 16) >> 21 & 1)


class Machine:
    """Boots in `folder`, with the shipped units and a program that is this checkout."""

    def __init__(self, folder: Path) -> None:
        self.etc = folder / "etc"
        """/etc/chokaq of the machine."""
        self.drop_ins = folder / "drop-ins"
        """NAME.service.d folders for /etc/systemd/system."""
        self.console = folder / "console"
        self._folder = folder
        self._name = f"chokaq-{os.getpid()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: list[Path] = []
        self._init = 0
        for path in (self.etc, self.drop_ins):
            path.mkdir()

    def boot(self) -> None:
        """Returns once its systemd has started what a machine starts."""
        root = self._folder / "root"
        root.mkdir()
        self._groups = [group for group in _own_groups(self._name) if _made(group)]
        binds = " ".join(f"--bind-ro={source}:{target}" for source, target in self._binds())
        arguments = " ".join(["systemd.unit=basic.target", *(f"systemd.mask={name}.service" for name in UNWANTED)])
        environ = {
            "ROOT": str(root),
            "NAME": self._name,
            "BINDS": binds,
            "ARGUMENTS": arguments,
            "PATH": os.environ["PATH"],
        }
        with self.console.open("wb") as console:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", _SPAWN, "sh", *map(str, self._groups)],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        self._until(lambda: self._find_init() != 0, "its first process")
        self._until(
            lambda: self.run("systemctl", "is-system-running").stdout.strip() in {"running", "degraded"}, "its boot"
        )

    def run(
        self, *command: str, env: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """A command inside, as root; never raises for its exit code."""
        inside = ["nsenter", f"--target={self._init}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]
        return subprocess.run(
            [*inside, *command],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit."""
        told = self.run("systemctl", "show", unit, f"--property={','.join(names)}").stdout
        return dict(line.split("=", 1) for line in told.splitlines())

    def state(self, unit: str) -> str:
        """active, failed, …"""
        return self.show(unit, "ActiveState")["ActiveState"]

    def journal(self, unit: str) -> str:
        """What a unit has written."""
        return self.run("journalctl", "--unit", unit, "--output=cat", "--no-pager", "--lines=60").stdout

    def halt(self) -> None:
        """End it and everything in it."""
        if self._process is not None:
            if self._init:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._init, signal.SIGKILL)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
        for group in self._groups:
            wait_until(partial(_removed, group), f"the end of what ran in {group}")
        with contextlib.suppress(OSError):
            Path("/run/systemd/nspawn/propagate", self._name).rmdir()

    def _binds(self) -> Iterator[tuple[Path, Path]]:
        opt = self._folder / "opt"
        for name in ("bin", "python", "source", "site"):
            (opt / name).mkdir(parents=True)
        start = opt / "bin/chokaq"
        start.write_text(_START)
        start.chmod(0o755)
        yield opt, _OPT
        yield Path(sys.base_prefix), _OPT / "python"
        yield ROOT, _OPT / "source"
        yield Path(sysconfig.get_path("purelib")), _OPT / "site"
        yield self.etc, Path("/etc/chokaq")
        yield FOLDER / "chokaq.sysusers.conf", Path("/etc/sysusers.d/chokaq.conf")
        system = Path("/etc/systemd/system")
        for unit in units():
            yield unit.path, system / unit.name
        for drop_in in self.drop_ins.iterdir():
            yield drop_in, system / drop_in.name

    def _find_init(self) -> int:
        """The process of this machine that is number 1 in there."""
        assert self._process is not None
        parents = {self._process.pid}
        for status in sorted(Path("/proc").glob("[0-9]*/status"), key=lambda path: int(path.parent.name)):
            with contextlib.suppress(OSError):
                told = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                if int(told["PPid"]) in parents:
                    parents.add(int(told["Pid"]))
                    if told["NSpid"].split()[1:] == ["1"]:
                        self._init = int(told["Pid"])
        return self._init

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        def or_ended() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, (
                f"the machine has ended:\n{self.console.read_text(errors='replace')[-4_000:]}"
            )
            return condition()

        wait_until(or_ended, what, BOOT)


def _own_groups(name: str) -> Iterator[Path]:
    """A control group below ours in each hierarchy that systemd needs: the unified one, and its own where both kinds are there."""
    ours = {
        kind: path
        for _, kind, path in (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
    }
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in mounts:
        options = mount[3].split(",")
        kind = (
            ""
            if mount[2] == "cgroup2"
            else "name=systemd"
            if mount[2] == "cgroup" and "name=systemd" in options
            else None
        )
        if kind is not None and kind in ours:
            yield Path(mount[1]) / ours[kind].lstrip("/") / name


def _made(group: Path) -> bool:
    try:
        group.mkdir()
    except OSError:
        return False
    return True


def _removed(group: Path) -> bool:
    """Take away a control group and those below it; False while a process is left in one."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            Path(folder).rmdir()
    except OSError:
        return False
    return True
