"""process_summary.csv and node_summary.csv: processed_mini-batches.csv summed up (reference §5.1)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from parallelrun_master.reports.files import replace_text

STATUSES = ("RUN_DONE", "RUN_TIMEOUT", "RUN_EXCEPTION", "LOAD_TIMEOUT", "LOAD_EXCEPTION")
_COLUMNS = (
    "Tries", "Total", "Succeeded", "Failed", "Elapsed Seconds", "Process Seconds", "Run Method Seconds", "Load Seconds",
    *STATUSES,
)  # fmt: skip
_STATUS_AT = {status: 8 + place for place, status in enumerate(STATUSES)}
_MAX_PROCESSES = 100_000
_OTHERS = "(others)/(others)"

Sums = list[float]
"""In the order of `_COLUMNS`."""
Work = tuple[int, int, float, float, float, float]
"""Items, those that succeeded; seconds in all, of CPU, in run(), of loading."""


class Summaries:
    """What each process and each node has done. Counts of tries: a mini-batch that failed twice was tried twice."""

    def __init__(self, logs: Path) -> None:
        self._folder = logs / "sys" / "job_report"
        self._sums: dict[str, Sums] = {}
        self._has_changed = False
        self._later: Iterator[None] = iter(())

    def add(self, process: str, status: str, work: Work) -> None:
        """Count one try."""
        sums = self._sums.get(process)
        if sums is None:
            sums = self._of(process)
        items, succeeded, elapsed_s, process_s, run_s, load_s = work
        sums[0] += 1
        sums[1] += items
        sums[2] += succeeded
        sums[3] += items - succeeded
        sums[4] += elapsed_s
        sums[5] += process_s
        sums[6] += run_s
        sums[7] += load_s
        sums[_STATUS_AT[status]] += 1
        self._has_changed = True

    def _of(self, process: str) -> Sums:
        name = process if len(self._sums) < _MAX_PROCESSES else _OTHERS
        return self._sums.setdefault(name, [0.0] * len(_COLUMNS))

    # What a leader before this one has written

    def read_later(self, report: Path, size: int) -> None:
        """Count the first `size` bytes of a report, too: a part of them with each `step()`."""
        self._later = self._read(report, size)

    def step(self) -> bool:
        """Read some more; returns whether there may be more."""
        return next(self._later, self) is None

    def _read(self, report: Path, size: int) -> Iterator[None]:
        with suppress(OSError), report.open(newline="", errors="replace") as file:
            for number, row in enumerate(csv.reader(_first_bytes(file, size))):
                self._count(row)
                if number % 5000 == 4999:
                    yield None

    def _count(self, row: list[str]) -> None:
        try:
            _, _, process, _, items, succeeded, _, elapsed, used, run, status, *_ = row
            if status in _STATUS_AT:
                work = (int(items), int(succeeded), _seconds(elapsed), _seconds(used), _seconds(run), 0.0)
                self.add(process, status, work)
            elif status == "LOAD_DONE":
                self._of(process)[7] += _seconds(elapsed)
        except ValueError:
            pass  # the header, a phase of a worker, or a line that the disk has cut

    # Files

    def write(self) -> None:
        """Bring both files up to date."""
        if not self._has_changed:
            return
        self._has_changed = False
        nodes: dict[str, Sums] = {}
        for process, sums in self._sums.items():
            node = process.partition("/")[0]
            nodes[node] = [a + b for a, b in zip(nodes.get(node) or [0.0] * len(sums), sums, strict=True)]
        replace_text(self._folder / "process_summary.csv", _table("Process", self._sums))
        replace_text(self._folder / "node_summary.csv", _table("Node", nodes))


def _table(first: str, sums: dict[str, Sums]) -> str:
    lines = [",".join((first, *_COLUMNS))]
    for name in sorted(sums):
        cells = [f"{value:.6f}" if 4 <= place < 8 else f"{value:.0f}" for place, value in enumerate(sums[name])]
        lines.append(",".join((name or "(lost)", *cells)))
    return "\n".join(lines) + "\n"


def _first_bytes(file: Iterator[str], size: int) -> Iterator[str]:
    for line in file:
        size -= len(line.encode(errors="replace"))
        if size < 0:
            return
        yield line


def _seconds(text: str) -> float:
    return float(text) if text else 0.0
