"""Resource usage of each node, from its reports (logs/sys/perf), as far as a release measures it."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from math import isfinite
from pathlib import Path

from parallelrun_core.adviser.evidence import NodeUse
from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.paths import open_ordinary

_MB = 1 << 20
_MOST_NODES = 2000
_MOST_BYTES = 24 << 20
"""Of all reports together; parsing takes a second for that."""
_LEAST_BYTES = 4 << 10
_FILES = 3
_LONGEST_S = 600.0
"""A row counts for no more time than that: those before it may have been left out."""

Row = dict[str, str]


def read_uses(logs: Path, nodes: Iterable[str]) -> dict[str, NodeUse]:
    """By node; one without a report is left out. Of long reports of many nodes, the first and the last rows count."""
    uses, looked_at = {}, list(nodes)[:_MOST_NODES]
    most = max(_LEAST_BYTES, _MOST_BYTES // _FILES // max(1, len(looked_at)))
    for node in looked_at:
        folder = Logs(logs).perf(node)
        if rows := _rows(folder / "node_resource_usage.csv", most):
            workers, gpus = (_rows(folder / f"{name}_usage.csv", most) for name in ("processes_resource", "node_gpu"))
            uses[node] = _use(rows, workers, gpus)
    return uses


def _rows(path: Path, most: int) -> list[Row]:
    with suppress(OSError, ValueError, csv.Error), open_ordinary(path) as file:
        size = os.fstat(file.fileno()).st_size
        lines = file.read(most if size <= most else most // 2).decode(errors="replace").splitlines()
        if size > most:
            file.seek(size - most // 2)
            lines[-1:] = file.read(most // 2).decode(errors="replace").splitlines()[1:]
        return list(csv.DictReader(lines))
    return []


def _use(rows: list[Row], workers: list[Row], gpus: list[Row]) -> NodeUse:
    total, available = _last(rows, "Memory Total (MB)"), min(_numbers(rows, "Memory Available (MB)"), default=None)
    return NodeUse(
        cpus=min(filter(None, (_last(rows, "Cpu Limit"), _last(rows, "Cpus"))), default=None),
        cpu_share=_mean(rows, "Cpu Percent"),
        throttled=_rate(rows, "Throttled (s)"),
        memory_bytes=total * _MB if total else None,
        memory_left_bytes=available * _MB if available is not None else None,
        cpu_pressure=_rate(rows, "Cpu Pressure (s)"),
        memory_pressure=_rate(rows, "Memory Pressure (s)"),
        io_pressure=_rate(rows, "Io Pressure (s)"),
        threads=_plain_mean(workers, "# of Threads"),
        gpu_share=_share(_plain_mean(gpus, "Utilization Percent"), 100),
        gpu_memory_share=_share(
            max(_numbers(gpus, "Memory Used (MB)"), default=None), _last(gpus, "Memory Total (MB)")
        ),
    )


def _numbers(rows: list[Row], column: str) -> list[float]:
    numbers = []
    for row in rows:
        with suppress(ValueError, TypeError):
            numbers.append(float(row.get(column) or ""))
    return [number for number in numbers if isfinite(number)]


def _last(rows: list[Row], column: str) -> float | None:
    numbers = _numbers(rows, column)
    return numbers[-1] if numbers else None


def _most(rows: list[Row], column: str) -> float | None:
    return max(_numbers(rows, column), default=None)


def _plain_mean(rows: list[Row], column: str) -> float | None:
    numbers = _numbers(rows, column)
    return sum(numbers) / len(numbers) if numbers else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _rate(rows: list[Row], column: str) -> float | None:
    """Return how fast a sum grew from the first row to the last, each second."""
    with suppress(ValueError, TypeError, ZeroDivisionError):
        first, last = rows[0], rows[-1]
        passed = datetime.fromisoformat(last.get("Utc Time") or "") - datetime.fromisoformat(
            first.get("Utc Time") or ""
        )
        rate = (float(last.get(column) or "") - float(first.get(column) or "")) / passed.total_seconds()
        return max(0.0, rate) if isfinite(rate) else None
    return None


def _mean(rows: list[Row], column: str) -> float | None:
    """Return the mean of percentages over the time since the row before, as a share: a longer time counts for more."""
    total = weights = 0.0
    before: datetime | None = None
    for row in rows:
        with suppress(ValueError, TypeError):
            at, value = datetime.fromisoformat(row.get("Utc Time") or ""), float(row.get(column) or "")
            weight = min(_LONGEST_S, max(0.001, (at - before).total_seconds())) if before else 1.0
            total, weights, before = total + weight * value, weights + weight, at
    share = total / weights / 100 if weights else None
    return share if share is not None and isfinite(share) else None
