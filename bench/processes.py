"""What /proc tells of processes: whole programs, their CPU time and their memory."""

import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Process(NamedTuple):
    """One process at one instant."""

    pid: int
    parent: int
    session: int
    cpu: float
    """Seconds of CPU, those of reaped children included."""


def processes() -> dict[int, Process]:
    """Every process of this host."""
    found = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - numbers, not paths
        if name.isdigit() and (process := look(int(name))) is not None:
            found[process.pid] = process
    return found


def look(pid: int) -> Process | None:
    """One process; None when it is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold blanks: count from its end.
    fields = text.rpartition(")")[2].split()
    return Process(pid, int(fields[1]), int(fields[3]), sum(map(int, fields[11:15])) / _TICKS)


def tree(roots: set[int]) -> list[Process]:
    """These processes, all of their sessions, and whatever descends from one of them."""
    everyone = processes()
    chosen = {pid for pid, process in everyone.items() if pid in roots or process.session in roots}
    while True:
        more = {pid for pid, process in everyone.items() if process.parent in chosen} - chosen
        if not more:
            return [everyone[pid] for pid in chosen]
        chosen |= more


def title(pid: int) -> str:
    """The command line, as `ps` shows it; empty when the process is gone."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def exact_cpu(pid: int) -> float:
    """Seconds that the living threads of a process have run, to the microsecond; 0 when it is gone."""
    total = 0
    for path in (_PROC / str(pid) / "task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return total / 1e9


def private_mb(pid: int) -> float:
    """Megabytes only this process maps (smaps_rollup); 0 when it is gone."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    kilobytes = sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))
    return kilobytes / 1024


def server_at(port: int) -> int | None:
    """The process that listens on a TCP port of this host; None when there is none, or it cannot be seen."""
    inodes = {
        fields[9]
        for table in ("tcp", "tcp6")
        for fields in _sockets(table)
        if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    }
    listeners = sorted(pid for pid in processes() if inodes & _socket_inodes(pid))
    return listeners[0] if listeners else None


def _sockets(table: str) -> list[list[str]]:
    try:
        return [line.split() for line in (_PROC / "net" / table).read_text().splitlines()[1:]]
    except OSError:
        return []


def _socket_inodes(pid: int) -> set[str]:
    found = set()
    try:
        for entry in (_PROC / str(pid) / "fd").iterdir():
            target = str(entry.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        return found
    return found


def server_cpu(port: int) -> float | None:
    """CPU seconds so far of the server on a port, with all its processes; None when it is not on this host."""
    root = server_at(port)
    if root is None:
        return None
    return sum(process.cpu for process in tree({root}))
