"""Present usage of a node and its processes, as rows of tables. Columns have the reference's names (§5.2)."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import psutil

from parallelrun_agent.node.cgroups import PROC, counted, read
from parallelrun_agent.node.memory import OomWatch
from parallelrun_agent.node.proc import Stat, process_ids, stat_of
from parallelrun_agent.node.waits import RESOURCES, PressureReader
from parallelrun_core.answers.nodes import NodeGpu
from parallelrun_core.untrusted.sanitize import csv_cell, in_one_line

_MB = 1 << 20
_MOST_PROCESSES = 200
_PLAIN: Final = re.compile(r"[A-Za-z0-9/][A-Za-z0-9/._:-]*")

NODE_COLUMNS = (
    "Utc Time", "Cpu Percent", "Memory Total (MB)", "Memory Available (MB)", "Memory Used (MB)", "Memory Used Percent",
    "Disk Io Read Count", "Disk Io Write Count", "Disk Io Read (MB)", "Disk Io Write (MB)", "Network Sent (MB)",
    "Network Recv (MB)", "# of TCP Connections", "# of UDP Connections",
    "Pressure Of", "Cpu Pressure (s)", "Cpu Pressure Full (s)", "Io Pressure (s)", "Io Pressure Full (s)",
    "Memory Pressure (s)", "Memory Pressure Full (s)", "Cpu Limit", "Throttled Periods", "Throttled (s)",
    "Page Faults", "Major Page Faults", "Context Switches", "Oom Kills", "Cpus", "Host",
)  # fmt: skip
DISK_COLUMNS = (
    "Utc Time", "Device", "Mount Point", "File System", "Total (MB)", "Used (MB)", "Free (MB)", "Used Percent",
)  # fmt: skip
PROCESS_COLUMNS = (
    "Utc Time", "Process", "Pid", "Cpu Percent", "Memory Rss (MB)", "Memory Percent", "# of Threads",
    "Disk Io Read (MB)", "Disk Io Write (MB)", "Gpu Memory (MB)",
)  # fmt: skip
GPU_COLUMNS = ("Utc Time", "Gpu", "Name", "Utilization Percent", "Memory Total (MB)", "Memory Used (MB)")


class Cpu:
    """The share of the CPUs that was busy between two calls."""

    def __init__(self) -> None:
        self._busy = self._total = 0.0

    def percent(self) -> float:
        """Since the last call."""
        times = psutil.cpu_times()
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        busy = total - times.idle - getattr(times, "iowait", 0.0)
        spent, self._busy = busy - self._busy, busy
        passed, self._total = total - self._total, total
        return max(0.0, min(100.0, 100 * spent / passed)) if passed > 0 else 0.0


def node_row(cpu_percent: float) -> list[str]:
    """The row for `NODE_COLUMNS`, without the time."""
    memory, disk, network = psutil.virtual_memory(), psutil.disk_io_counters(), psutil.net_io_counters()
    disk_figures = (disk.read_count, disk.write_count) if disk else (0, 0)
    disk_bytes = (disk.read_bytes, disk.write_bytes) if disk else (0, 0)
    return [
        f"{cpu_percent:.1f}",
        *map(_mb, (memory.total, memory.available, memory.used)),
        f"{memory.percent:.1f}",
        *map(str, disk_figures),
        *map(_mb, (*disk_bytes, network.bytes_sent, network.bytes_recv)),
        str(_connections("tcp")),
        str(_connections("udp")),
    ]


class KernelCounters:
    """The kernel's counters of waiting and of memory, as cells: the last ones of `NODE_COLUMNS`.

    They are sums since the machine has started, or the cgroup was made. What a kernel doesn't count is empty.
    """

    def __init__(self) -> None:
        self._waits = PressureReader()
        self._oom = OomWatch()

    def cells(self) -> list[str]:
        pressures = [self._waits.pressure(each) for each in RESOURCES]
        pressure = [f"{s:.3f}" for each in pressures if each for s in (each.some_s, each.full_s)]
        limits = ["", "", ""]
        if throttling := self._waits.throttling():
            limits = [f"{throttling.limit:.2f}", str(throttling.periods), f"{throttling.throttled_s:.3f}"]
        memory, kills = read(PROC / "vmstat"), self._oom.kills
        counts = [
            counted(memory, "pgfault"),
            counted(memory, "pgmajfault"),
            counted(read(PROC / "stat"), "ctxt"),
            kills,
        ]
        return [
            self._waits.of if pressure else "",
            *(pressure if all(pressures) else [""] * (2 * len(RESOURCES))),
            *limits,
            *("" if count is None else str(count) for count in counts),
            str(len(os.sched_getaffinity(0))),
        ]


def _connections(kind: str) -> int:
    """Count connections by the kernel's list: psutil would search the descriptors of every process."""
    count = 0
    for name in (kind, f"{kind}6"):
        with suppress(OSError), open(f"/proc/net/{name}", "rb") as file:
            count += sum(1 for _ in file) - 1
    return count


def disk_rows() -> list[list[str]]:
    """Rows for `DISK_COLUMNS`, without the time: each disk once."""
    rows: dict[str, list[str]] = {}
    for part in psutil.disk_partitions(all=False):
        with suppress(OSError):
            used = psutil.disk_usage(part.mountpoint)
            figures = [*map(_mb, (used.total, used.used, used.free)), f"{used.percent:.1f}"]
            rows.setdefault(part.device, [_cell(part.device), _cell(part.mountpoint), _cell(part.fstype), *figures])
    if not rows:  # a container has no device of its own
        used = psutil.disk_usage("/")
        rows[""] = ["", "/", "", *map(_mb, (used.total, used.used, used.free)), f"{used.percent:.1f}"]
    return list(rows.values())


def gpu_rows(gpus: list[NodeGpu]) -> list[list[str]]:
    """Rows for `GPU_COLUMNS`, without the time."""
    return [
        [
            _cell(gpu.device),
            _cell(gpu.name),
            "" if gpu.utilization is None else f"{100 * gpu.utilization:.0f}",
            *("" if size is None else _mb(size) for size in (gpu.memory_bytes, gpu.memory_used_bytes)),
        ]
        for gpu in gpus
    ]


def worker_rows(workers: dict[str, int], table: ProcessTable, on_gpus: Counter[int]) -> list[list[str]]:
    """Rows for `PROCESS_COLUMNS`, without the time; none for workers that have ended meanwhile.

    Args:
        on_gpus: bytes on GPUs by process group.
    """
    rows = []
    for name, pid in sorted(workers.items()):
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            with process.oneshot():
                cpu, share = table.cpu_percent(pid), process.memory_percent()
                figures = [f"{cpu:.1f}", _mb(process.memory_info().rss), f"{share:.1f}", str(process.num_threads())]
            io = process.io_counters()
            on_gpu = _mb(on_gpus[pid]) if pid in on_gpus else ""
            rows.append([name, str(pid), *figures, _mb(io.read_bytes), _mb(io.write_bytes), on_gpu])
    return rows


class ProcessUsage(NamedTuple):
    cpu_s: float
    at: float


class ProcessTable:
    """All processes of the node, by what they have used lately. Reads one small file for each."""

    def __init__(self) -> None:
        self._before: dict[int, ProcessUsage] = {}
        self._workers: dict[int, ProcessUsage] = {}

    def refresh(self) -> None:
        """Begin the time that the next `text()` covers."""
        now = time.monotonic()
        self._before = {pid: ProcessUsage(stat.cpu_s, now) for pid, stat in _all_processes()}

    def cpu_percent(self, pid: int) -> float:
        """Return how much of a CPU one process has used since the last such call for it, or since its start."""
        process = psutil.Process(pid)
        times, now = process.cpu_times(), time.monotonic()
        cpu_s = times.user + times.system
        before = self._workers.get(pid) or ProcessUsage(0.0, now - max(1e-3, time.time() - process.create_time()))
        self._workers[pid] = ProcessUsage(cpu_s, now)
        return 100 * max(0.0, cpu_s - before.cpu_s) / max(1e-3, now - before.at)

    def text(self, when: str) -> str:
        """The table, twice: by CPU and by memory."""
        now = time.monotonic()
        total = psutil.virtual_memory().total
        rows, used = [], {}
        for pid, stat in _all_processes():
            before = self._before.get(pid)
            used[pid] = ProcessUsage(stat.cpu_s, now)
            percent = 100 * (stat.cpu_s - before.cpu_s) / max(1e-3, now - before.at) if before else 0.0
            rows.append((max(0.0, percent), stat.resident_bytes, pid, stat.name))
        self._before = used
        by_memory = sorted(rows, key=lambda row: -row[1])
        parts = [("CPU", sorted(rows, key=lambda row: -row[0])), ("memory", by_memory)]
        lines = []
        for by, ordered in parts:
            lines += [f"{when} processes by {by}, {len(ordered)} in all", "CPU %   MEM %     RSS MB      PID  NAME"]
            lines += [
                f"{percent:5.1f}   {100 * rss / total:5.1f}  {rss / _MB:9.1f}  {pid:7}  {in_one_line(name)}"
                for percent, rss, pid, name in ordered[:_MOST_PROCESSES]
            ]
            lines.append("")
        return "\n".join(lines)


def _all_processes() -> Iterator[tuple[int, Stat]]:
    for number, pid in enumerate(process_ids()):
        if number % 50 == 0:
            time.sleep(0)  # the agent's loop goes first
        if stat := stat_of(pid):
            yield pid, stat


def _mb(size: float) -> str:
    return f"{size / _MB:.1f}"


def _cell(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else csv_cell(text)
