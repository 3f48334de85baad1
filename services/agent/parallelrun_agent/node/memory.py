"""Kills for want of memory: the kernel counts the processes, but doesn't name them."""

from __future__ import annotations

from pathlib import Path

from parallelrun_agent.node.cgroups import CGROUPS, PROC, counted, folders, read


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
