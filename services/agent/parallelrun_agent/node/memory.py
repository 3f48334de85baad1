"""Whether the kernel has killed a process for want of memory: it counts these, but doesn't name them."""

from __future__ import annotations

from pathlib import Path


class OomWatch:
    """Reads the kernel's counter: that of the agent's own cgroup, where there is one."""

    def __init__(self, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self._counter = next((path for path in _candidates(proc, cgroups) if _read(path) is not None), None)
        self._seen = 0
        self.poll()

    def poll(self) -> bool:
        """Whether a process was killed since the last call. Call it when a worker starts, and when one was killed."""
        count = (_read(self._counter) if self._counter else None) or 0
        more = count > self._seen
        self._seen = count
        return more


def _candidates(proc: Path, cgroups: Path) -> list[Path]:
    """The files with a line `oom_kill COUNT`, best first."""
    files = []
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inside = path.lstrip("/")
        if not controllers:  # cgroup v2
            files += [cgroups / inside / "memory.events", cgroups / "memory.events"]
        elif "memory" in controllers.split(","):
            files += [cgroups / "memory" / inside / "memory.oom_control", cgroups / "memory" / "memory.oom_control"]
    return [*files, proc / "vmstat"]


def _read(path: Path) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
