"""Usage of the nodes of a job, side by side: the ends of the tables that their agents write below logs/sys/perf."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import Final, TypeVar

from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.answer import rfc3339
from parallelrun_core.answers.nodes import JobNodeUsage, NodeUsageReport, ResourceUsage, UsageHistory
from parallelrun_core.errors import NotFound, UnsafePath

_PERF: Final = "sys/perf/"
_OF_NODE: Final = "node_resource_usage.csv"
_OF_GPUS: Final = "node_gpu_usage.csv"
MOST_NODES: Final = 2000
_END_BYTES: Final = 16 << 10
"""Of each table: about a hundred rows."""
_HEAD_BYTES: Final = 4 << 10
_POINTS: Final = 60
_SAME_TIME_S: Final = 60.0
_MB: Final = 1 << 20

Row = dict[str, str]
_N = TypeVar("_N", int, float)
_U = TypeVar("_U", bound=ResourceUsage)


def node_usage(served: ServedFolder, limit: int) -> NodeUsageReport:
    """Return what the nodes used when they were measured last.

    Args:
        served: the logs of the job.
        limit: nodes that are listed; the total has all.
    """
    nodes = [usage for name in _nodes(served) if (usage := _usage(served, name)) is not None]
    latest = max((datetime.fromisoformat(each.at) for each in nodes), default=None)
    current = [each for each in nodes if latest and _seconds(each.at, latest) <= _SAME_TIME_S]
    machines = by_machine((each.host or each.node, each) for each in current)
    return NodeUsageReport(
        items=nodes[:limit],
        nodes_total=len(nodes),
        total=summed([*machines.values()]),
        nodes_in_total=len(current),
        machines_in_total=len(machines),
    )


def _nodes(served: ServedFolder) -> Iterator[str]:
    """The names of the nodes that have a folder of tables, without a look at all files in each."""
    after = _PERF
    for _ in range(MOST_NODES):
        entry = next(iter(served.files(after)), None)
        if entry is None or not entry.path.startswith(_PERF):
            return
        node = entry.path.removeprefix(_PERF).partition("/")[0]
        yield node
        after = f"{_PERF}{node}0"  # the character after the slash: behind all that is in the folder


def _usage(served: ServedFolder, node: str) -> JobNodeUsage | None:
    timed = [(time, row) for row in _rows(served, f"{_PERF}{node}/{_OF_NODE}") if (time := _time(row))]
    if not timed:
        return None
    rows, (at, last) = [row for _, row in timed], timed[-1]
    gpus = [row for row in _rows(served, f"{_PERF}{node}/{_OF_GPUS}") if row.get("Utc Time")]
    gpus = [row for row in gpus if row["Utc Time"] == gpus[-1]["Utc Time"]]
    points = rows[-_POINTS:]
    return JobNodeUsage(
        node=node,
        host=last.get("Host") or "",
        at=rfc3339(at.timestamp()),
        cpus=min(filter(None, (_number(last, "Cpu Limit"), _number(last, "Cpus"))), default=None),
        cpu=_percent(last, "Cpu Percent"),
        memory_used_bytes=_bytes(last, "Memory Used (MB)"),
        memory_bytes=_bytes(last, "Memory Total (MB)"),
        gpus=len(gpus),
        gpu=_mean([share for row in gpus if (share := _percent(row, "Utilization Percent")) is not None]),
        gpu_memory_used_bytes=_total([_bytes(row, "Memory Used (MB)") for row in gpus]),
        gpu_memory_bytes=_total([_bytes(row, "Memory Total (MB)") for row in gpus]),
        disk_read_bytes_per_s=_rate(rows, "Disk Io Read (MB)"),
        disk_written_bytes_per_s=_rate(rows, "Disk Io Write (MB)"),
        network_received_bytes_per_s=_rate(rows, "Network Recv (MB)"),
        network_sent_bytes_per_s=_rate(rows, "Network Sent (MB)"),
        history=UsageHistory(
            at=[rfc3339(time.timestamp()) for time, _ in timed[-_POINTS:]],
            cpu=[_percent(row, "Cpu Percent") for row in points],
            memory=[_percent(row, "Memory Used Percent") for row in points],
        ),
    )


def by_machine(nodes: Iterable[tuple[str, _U]]) -> dict[str, _U]:
    """The measurements of machines by their names. Each node measures its whole machine, so one on each counts."""
    return dict(nodes)


def summed(nodes: Sequence[ResourceUsage]) -> ResourceUsage:
    """All together: CPUs count by how many they are, GPUs, too."""
    busy = [(each.cpu * (each.cpus or 1), each.cpus or 1) for each in nodes if each.cpu is not None]
    gpu = [(each.gpu * each.gpus, each.gpus) for each in nodes if each.gpu is not None]
    return ResourceUsage(
        cpus=_total([each.cpus for each in nodes]),
        cpu=_weighted(busy),
        memory_used_bytes=_total([each.memory_used_bytes for each in nodes]),
        memory_bytes=_total([each.memory_bytes for each in nodes]),
        gpus=sum(each.gpus for each in nodes),
        gpu=_weighted(gpu),
        gpu_memory_used_bytes=_total([each.gpu_memory_used_bytes for each in nodes]),
        gpu_memory_bytes=_total([each.gpu_memory_bytes for each in nodes]),
        disk_read_bytes_per_s=_total([each.disk_read_bytes_per_s for each in nodes]),
        disk_written_bytes_per_s=_total([each.disk_written_bytes_per_s for each in nodes]),
        network_received_bytes_per_s=_total([each.network_received_bytes_per_s for each in nodes]),
        network_sent_bytes_per_s=_total([each.network_sent_bytes_per_s for each in nodes]),
    )


def _rows(served: ServedFolder, path: str) -> list[Row]:
    """The last rows of a table, by the names of its columns."""
    try:
        fd = served.open(path)
    except (NotFound, UnsafePath):
        return []
    try:
        size = os.fstat(fd).st_size
        text = os.pread(fd, min(size, _END_BYTES), max(0, size - _END_BYTES))
        if size > _END_BYTES:
            head = os.pread(fd, _HEAD_BYTES, 0)
            text = head[: head.find(b"\n") + 1] + text[text.find(b"\n") + 1 :]
    finally:
        os.close(fd)
    whole = text[: text.rfind(b"\n") + 1]  # the last line may still be written
    with suppress(csv.Error):
        return list(csv.DictReader(whole.decode(errors="replace").splitlines()))
    return []


def _time(row: Row) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(row.get("Utc Time") or "").replace(tzinfo=UTC)
    return None


def _seconds(at: str, latest: datetime) -> float:
    return (latest - datetime.fromisoformat(at)).total_seconds()


def _number(row: Row, column: str) -> float | None:
    with suppress(ValueError, TypeError):
        number = float(row.get(column) or "")
        return number if isfinite(number) else None
    return None


def _percent(row: Row, column: str) -> float | None:
    number = _number(row, column)
    return None if number is None else round(number / 100, 4)


def _bytes(row: Row, column: str) -> int | None:
    number = _number(row, column)
    return None if number is None else int(number * _MB)


def _rate(rows: list[Row], column: str) -> float | None:
    """The growth of a sum in MB between the last two rows, in bytes a second."""
    if len(rows) < 2:
        return None
    (before, after), (first, last) = (_time(row) for row in rows[-2:]), (_number(row, column) for row in rows[-2:])
    if before is None or after is None or first is None or last is None or after <= before:
        return None
    return round(max(0.0, (last - first) * _MB / (after - before).total_seconds()), 1)


def _total(numbers: list[_N | None]) -> _N | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None


def _mean(shares: list[float]) -> float | None:
    return round(sum(shares) / len(shares), 4) if shares else None


def _weighted(shares: Sequence[tuple[float, float]]) -> float | None:
    """The sum of the first numbers as a share of that of the second ones."""
    whole = sum(weight for _, weight in shares)
    return round(sum(share for share, _ in shares) / whole, 4) if whole else None
