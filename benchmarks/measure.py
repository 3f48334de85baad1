"""Clocks, CPU and memory accounting, and the statistics of several rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

Figures = dict[str, float]
"""What one system reached in one round: name of the figure → value."""


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

    def fields(self, name: str, digits: int = 2) -> dict[str, str]:
        """The same for the last line of a benchmark."""
        values = {name: self.median, f"{name}_low": self.low, f"{name}_high": self.high}
        return {key: f"{value:.{digits}f}" for key, value in values.items()}


class Comparison:
    """Several systems in turn, round by round, so that a disturbance affects all of them alike."""

    def __init__(self, systems: Mapping[str, Callable[[], Figures]]) -> None:
        self._systems = dict(systems)
        self._found: dict[str, list[Figures]] = {name: [] for name in systems}

    def run(self, rounds: int) -> Comparison:
        """Run every system once in each round, and print each result at once."""
        for number in range(1, rounds + 1):
            for name, measure in self._systems.items():
                figures = measure()
                self._found[name].append(figures)
                told = ", ".join(f"{figure} {_show(value)}" for figure, value in figures.items())
                print(f"  round {number}/{rounds}  {name}: {told}", flush=True)
        return self

    def values(self, system: str, figure: str) -> list[float]:
        """One figure of one system, round by round."""
        return [figures[figure] for figures in self._found[system]]

    def spread(self, system: str, figure: str) -> Spread:
        """The same as median and range."""
        return Spread.of(self.values(system, figure))

    def ratio(self, system: str, to: str, figure: str) -> Spread:
        """A system's figure over another's of the same round."""
        pairs = zip(self.values(system, figure), self.values(to, figure), strict=True)
        return Spread.of(mine / theirs for mine, theirs in pairs)

    def table(self) -> str:
        """All systems and figures, medians and ranges."""
        titles = list(dict.fromkeys(name for found in self._found.values() for name in found[0]))
        rows = [["", *titles]]
        for system, found in self._found.items():
            rows.append([system, *(self._cell(system, title) if title in found[0] else "" for title in titles)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _cell(self, system: str, figure: str) -> str:
        spread = self.spread(system, figure)
        return spread.show(0 if spread.median >= 100 else 1 if spread.median >= 10 else 3)


def _show(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU that these processes have used, with all their children, those that have ended included."""
    return sum(_family_cpu_seconds(pid) for pid in pids)


def _family_cpu_seconds(pid: int) -> float:
    while True:
        try:
            process = psutil.Process(pid)
            family = [process, *process.children(recursive=True)]
            times = [member.cpu_times() for member in family]
            is_same = set(process.children(recursive=True)) == set(family[1:])
        except psutil.NoSuchProcess:
            if not psutil.pid_exists(pid):
                return 0.0
            continue
        # The time of one that has ended meanwhile is now its parent's: counted twice, or not at all.
        if is_same:
            return sum(each.user + each.system + each.children_user + each.children_system for each in times)


def own_cpu_seconds(pid: int) -> float:
    """CPU that this process has used, without its children."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def peak_mb(pid: int) -> float:
    """The peak memory (RSS) of a process since its start, in MB; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)
