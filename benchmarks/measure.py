"""Clocks, CPU accounting, and what to make of several rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = sorted(values)
        return cls(found[0], statistics.median(found), found[-1])

    def show(self, digits: int = 0) -> str:
        """Median, and the range in brackets."""
        return f"{self.median:,.{digits}f} [{self.low:,.{digits}f}..{self.high:,.{digits}f}]"


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU that these processes have used, with all their children, those that have ended included."""
    total = 0.0
    for pid in pids:
        try:
            process = psutil.Process(pid)
            family = [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
        for member in family:
            try:
                times = member.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total
