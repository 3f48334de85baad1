"""process_summary.csv and node_summary.csv: processed_mini-batches.csv summed up (reference §5.1)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from parallelrun_core.layout import Logs
from parallelrun_master.reports.columns import cells_of
from parallelrun_master.reports.files import replace_text

STATUSES = ("RUN_DONE", "RUN_TIMEOUT", "RUN_EXCEPTION", "LOAD_TIMEOUT", "LOAD_EXCEPTION")
_COLUMNS = {
    "Tries": "tries", "Total": "items", "Succeeded": "succeeded", "Failed": "failed", "Elapsed Seconds": "elapsed_s",
    "Process Seconds": "process_s", "Run Method Seconds": "run_s", "Load Seconds": "load_s",
}  # fmt: skip
"""Column → field of `Sums`; the number of each status follows, and then `_OF_READING`."""
_READ_MB = "Read (MB)"
_OF_READING = (_READ_MB, "Seconds per Item")
_READ_COLUMNS = (
    "Status", "Process", "Total", "Succeeded", "Elapsed Seconds", "Process Seconds", "Run Method Seconds",
)  # fmt: skip
_MB = 1 << 20
_UNKNOWN = -1
_MAX_PROCESSES = 100_000
_LEAST_TRIES = 10
_LEAST_S = 10.0
_OTHERS = "(others)/(others)"


@dataclass(slots=True)
class Sums:
    """Sums over some tries."""

    tries: int = 0
    items: int = 0
    succeeded: int = 0
    failed: int = 0
    elapsed_s: float = 0.0
    process_s: float = 0.0
    """CPU seconds; not a number: that of some tries isn't known, since others ran in their process."""
    run_s: float = 0.0
    load_s: float = 0.0
    read_bytes: int = _UNKNOWN
    """Bytes that tries have read, as far as the kernel says; below 0: of none it is known."""
    ended: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    """Number of by their status."""

    def add(self, other: Sums) -> None:
        for name in _COLUMNS.values():
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for status, count in other.ended.items():
            self.ended[status] += count
        self.has_read(other.read_bytes)

    def has_read(self, read_bytes: int) -> None:
        """Add what a try has read; below 0: nobody knows."""
        if read_bytes >= 0:
            self.read_bytes = max(0, self.read_bytes) + read_bytes

    def cells(self) -> list[str]:
        sums = [getattr(self, name) for name in _COLUMNS.values()]
        read_mb = self.read_bytes / _MB if self.read_bytes >= 0 else math.nan
        of_reading = (read_mb, (self.run_s + self.load_s) / max(1, self.items))
        return list(map(_cell, (*sums, *self.ended.values(), *of_reading)))


class Summaries:
    """Sums by process and by node. Counts of tries: a mini-batch that failed twice was tried twice.

    Args:
        least_tries: fewer tries are summed up only if they took ten seconds or more.
    """

    def __init__(self, logs: Path, *, least_tries: int = _LEAST_TRIES) -> None:
        self._folder = Logs(logs).job_report
        self._least_tries = least_tries
        self._sums: dict[str, Sums] = {}
        self._has_changed = False
        self._later: Iterator[None] = iter(())

    def add(
        self, process: str, status: str, *,
        items: int, succeeded: int, elapsed_s: float, process_s: float, run_s: float, load_s: float = 0.0,
        read_bytes: int = _UNKNOWN,
    ) -> None:  # fmt: skip
        """Count one try.

        Args:
            process_s: below 0 if it isn't known, as `read_bytes`.
        """
        sums = self._sums.get(process)
        if sums is None:
            sums = self._of(process)
        sums.tries += 1
        sums.items += items
        sums.succeeded += succeeded
        sums.failed += items - succeeded
        sums.elapsed_s += elapsed_s
        sums.process_s += process_s if process_s >= 0 else math.nan
        sums.run_s += run_s
        sums.load_s += load_s
        sums.has_read(read_bytes)
        sums.ended[status] += 1
        self._has_changed = True

    def _of(self, process: str) -> Sums:
        name = process if len(self._sums) < _MAX_PROCESSES else _OTHERS
        return self._sums.setdefault(name, Sums())

    # What a leader before this one has written

    def read_later(self, report: Path, size: int) -> None:
        """Count the first `size` bytes of a report, too: a part of them with each `step()`."""
        self._later = self._read(report, size)

    def step(self) -> bool:
        """Read some more; returns whether there may be more."""
        return next(self._later, self) is None

    def _read(self, report: Path, size: int) -> Iterator[None]:
        with suppress(OSError, ValueError), report.open(newline="", errors="replace") as file:
            rows = csv.reader(_first_bytes(file, size))
            header = next(rows, [])  # a release before this one may have begun it
            cells = cells_of(header, *_READ_COLUMNS, *([_READ_MB] if _READ_MB in header else []))
            for number, row in enumerate(rows):
                with suppress(ValueError, IndexError):  # a phase of a worker, or a line that the disk has cut
                    self._count(*cells(row))
                if number % 5000 == 4999:
                    yield None

    def _count(self, status: str, process: str, items: str, succeeded: str, *figures: str) -> None:
        if status in STATUSES:
            elapsed_s, process_s, run_s, *read_mb = figures
            self.add(
                process, status, items=int(items), succeeded=int(succeeded),
                elapsed_s=_number(elapsed_s), process_s=float(process_s or _UNKNOWN), run_s=_number(run_s),
                read_bytes=round(float(read_mb[0]) * _MB) if any(read_mb) else _UNKNOWN,
            )  # fmt: skip
        elif status == "LOAD_DONE":
            self._of(process).load_s += _number(figures[0])

    # Files

    def write(self) -> None:
        """Bring both files up to date, if they tell more than a look at the tries."""
        if not self._has_changed or self._is_short():
            return
        self._has_changed = False
        nodes: dict[str, Sums] = {}
        for process, sums in self._sums.items():
            node = process.partition("/")[0]
            nodes.setdefault(node, Sums()).add(sums)
        replace_text(self._folder / "process_summary.csv", _table("Process", self._sums))
        replace_text(self._folder / "node_summary.csv", _table("Node", nodes))

    def _is_short(self) -> bool:
        sums = self._sums.values()
        is_slow = sum(each.elapsed_s for each in sums) >= _LEAST_S
        return not is_slow and sum(each.tries for each in sums) < self._least_tries


def _table(first: str, sums: dict[str, Sums]) -> str:
    lines = [",".join((first, *_COLUMNS, *STATUSES, *_OF_READING))]
    lines += [",".join((name or "(lost)", *sums[name].cells())) for name in sorted(sums)]
    return "\n".join(lines) + "\n"


def _first_bytes(file: Iterator[str], size: int) -> Iterator[str]:
    for line in file:
        size -= len(line.encode(errors="replace"))
        if size < 0:
            return
        yield line


def _cell(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if math.isnan(value) else f"{value:.6f}"


def _number(text: str) -> float:
    return float(text) if text else 0.0
