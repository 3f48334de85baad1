"""The use of a node's resources as its heartbeats tell it, with the last half hour."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Final, NamedTuple

import psutil

from parallelrun_agent.node.usage import Cpu
from parallelrun_agent.node.waits import PressureReader
from parallelrun_core.store.nodes import NodeMeasurement

_LEAST_S: Final = 2.0
"""Between two measurements: over less, shares and rates jump."""
_HISTORY_S: Final = 30.0
_POINTS: Final = 60


class _Counters(NamedTuple):
    """Bytes since the machine has started; None: the kernel counts none."""

    read: int | None
    written: int | None
    received: int
    sent: int


class UsageMeter:
    """Measures when it is asked, and remembers a value of each half minute.

    Args:
        limits: knows the limit on the CPUs of the node.
    """

    def __init__(self, limits: PressureReader) -> None:
        self._cpu, self._span_cpu = Cpu(), Cpu()
        self._limits = limits
        self._measured_at = self._span_at = float("-inf")
        self._counters: _Counters | None = None
        self._latest: NodeMeasurement | None = None
        self._cpu_history: deque[int] = deque(maxlen=_POINTS)
        self._memory_history: deque[int] = deque(maxlen=_POINTS)

    def now(self, now: float, wall: float) -> NodeMeasurement | None:
        """Return the use since the call before, or what was measured in the last seconds.

        Args:
            now: on the monotonic clock, in seconds.
            wall: seconds since the epoch.

        Returns:
            None: the system refuses to say, or it is the first call.
        """
        if now - self._measured_at >= _LEAST_S:
            with suppress(OSError, psutil.Error, RuntimeError):
                self._measure(now, wall)
        return self._latest

    def _measure(self, now: float, wall: float) -> None:
        passed_s, before = now - self._measured_at, self._counters
        counters, memory, share = _counters(), psutil.virtual_memory(), self._cpu.percent() / 100
        self._measured_at, self._counters = now, counters
        if before is None:
            self._span_at = now
            self._span_cpu.percent()
            return
        if now - self._span_at >= _HISTORY_S:
            self._span_at = now
            self._cpu_history.append(round(self._span_cpu.percent()))
            self._memory_history.append(round(memory.percent))
        throttling, cpus = self._limits.throttling(), len(os.sched_getaffinity(0))
        rates = [_rate(then, after, passed_s) for then, after in zip(before, counters, strict=True)]
        self._latest = NodeMeasurement(
            at=wall,
            cpus=min(throttling.limit, cpus) if throttling else cpus,
            cpu=round(share, 4),
            memory_used_bytes=memory.used,
            disk_read_bytes_per_s=rates[0],
            disk_written_bytes_per_s=rates[1],
            network_received_bytes_per_s=rates[2] or 0.0,
            network_sent_bytes_per_s=rates[3] or 0.0,
            history_s=_HISTORY_S,
            cpu_history=list(self._cpu_history),
            memory_history=list(self._memory_history),
        )


def _counters() -> _Counters:
    disk, network = psutil.disk_io_counters(), psutil.net_io_counters()
    return _Counters(
        disk.read_bytes if disk else None,
        disk.write_bytes if disk else None,
        network.bytes_recv,
        network.bytes_sent,
    )


def _rate(before: int | None, after: int | None, passed_s: float) -> float | None:
    """Bytes a second; counters that were set back give 0."""
    return None if before is None or after is None else round(max(0, after - before) / passed_s, 1)
