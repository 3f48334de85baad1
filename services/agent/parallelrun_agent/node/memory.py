"""Memory: what is left of it here, what a process has, and kills for want of it, which the kernel only counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from parallelrun_agent.node.cgroups import CGROUPS, PROC, counted, folders, read

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_NO_LIMIT: Final = 1 << 60


def available_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """The memory that more processes can have here: of the machine, or of the agent's cgroup if that has a limit.

    None: this kernel doesn't say.
    """
    of_machine = _kilobytes(read(proc / "meminfo"), "MemAvailable:")
    places = [folder for folder in folders("memory", proc, cgroups) if _number(folder / "memory.max") is not None]
    if of_machine is None or not places:
        return of_machine
    limit, used = _number(places[0] / "memory.max"), _number(places[0] / "memory.current")
    if limit is None or used is None or limit >= _NO_LIMIT:
        return of_machine
    reclaimable = counted(read(places[0] / "memory.stat"), "inactive_file") or 0
    return min(of_machine, max(0, limit - used + reclaimable))


def resident_bytes(pid: int, proc: Path = PROC) -> int:
    """The memory that a process has; 0: there is none."""
    pages = read(proc / str(pid) / "statm").split()[1:2]
    return int(pages[0]) * _PAGE if pages else 0


def _kilobytes(text: str, name: str) -> int | None:
    for line in text.splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return None


def _number(path: Path) -> int | None:
    text = read(path).strip()
    return int(text) if text.isdecimal() else None


class OomWatch:
    """Reads the kernel's counter: that of the agent's own cgroup, where there is one."""

    def __init__(self, proc: Path = PROC, cgroups: Path = CGROUPS) -> None:
        self._counter = next((path for path in _candidates(proc, cgroups) if _kills(path) is not None), None)
        self._seen = 0
        self.poll()

    @property
    def kills(self) -> int | None:
        """Return how many there have been since the cgroup was made, or the machine has started; None: nobody counts
        them."""
        return _kills(self._counter) if self._counter else None

    def poll(self) -> bool:
        """Return whether a process was killed since the last call. Call it when a worker starts, and when one was
        killed."""
        count = self.kills or 0
        more = count > self._seen
        self._seen = count
        return more


def _candidates(proc: Path, cgroups: Path) -> list[Path]:
    """The files with a line `oom_kill COUNT`, best first."""
    names = ("memory.events", "memory.oom_control")  # of version 2 and of version 1
    return [*(folder / name for folder in folders("memory", proc, cgroups) for name in names), proc / "vmstat"]


def _kills(path: Path) -> int | None:
    return counted(read(path), "oom_kill")
