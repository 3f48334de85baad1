"""The metrics that the entry scripts of a job have logged: `logs/user/metrics/<source>/<process>.jsonl`.

A source is a node; of a pipeline, the name of a step that passes its metrics on. Each worker process has a file of its
own (`parallelrun_worker/metrics.py` writes it), whose lines are JSON objects. Workers may be other users, and scripts
may write anything there: so links are not followed, what isn't a metric is left out, and all that is read has a limit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.folder.files import replace_file
from parallelrun_core.folder.layout import Logs
from parallelrun_core.paths import open_beneath

MAX_NAMES: Final = 500
MAX_POINTS: Final = 500
"""Of each metric: the last ones."""
_MAX_FILES: Final = 4_096
_MAX_BYTES: Final = 32 << 20
"""Of all files together."""
_MAX_NAME: Final = 255
_MAX_RECORDED: Final = 50
_MAX_TEXT: Final = 200

Value = None | bool | int | float | str | list[Any] | dict[str, Any]


class Point(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One value of a metric."""

    time: float
    """Seconds since the epoch, by the clock of the node."""
    name: str = ""
    value: Value = None
    step: int | None = None
    source: str = ""
    process: str = ""


class _Line(Point, kw_only=True, frozen=True, omit_defaults=True):
    time: float = 0.0
    dropped: int = 0


@dataclass
class Metric:
    """What was logged under one name."""

    name: str
    count: int = 0
    """How many values."""
    points: list[Point] = field(default_factory=list)
    """The last ones, in the order of their times."""

    @property
    def last(self) -> Value:
        return self.points[-1].value

    def add(self, point: Point) -> None:
        """One more, in any order; `trim` before the points are read."""
        self.count += 1
        self.points.append(point)
        if len(self.points) > 2 * MAX_POINTS:
            self.trim()

    def trim(self) -> None:
        """Sort the points, and forget the earliest if there are too many."""
        self.points.sort(key=attrgetter("time"))
        del self.points[:-MAX_POINTS]


@dataclass
class Metrics:
    """The metrics of a job, by name."""

    metrics: dict[str, Metric] = field(default_factory=dict)
    left_out: int = 0
    """Values that are not in these: there were too many."""


def last_values(logs: Path) -> dict[str, bool | int | float | str | None]:
    """The last value of each of the first metrics that are no list or mapping: for the job's record."""
    values: dict[str, bool | int | float | str | None] = {}
    if not Logs(logs).user_metrics.is_dir():  # one call of the file system, if nothing was logged
        return values
    for name, metric in read_metrics(logs).metrics.items():
        value = metric.last
        if not isinstance(value, list | dict) and len(values) < _MAX_RECORDED:
            values[name] = value[:_MAX_TEXT] if isinstance(value, str) else value
    return values


def read_metrics(logs: Path) -> Metrics:
    """All metrics of a job, sorted by name."""
    read = Metrics()
    for line in _lines(logs):
        read.left_out += line.dropped
        if not line.name:
            continue
        metric = read.metrics.get(line.name)
        if metric is None and len(read.metrics) < MAX_NAMES:
            metric = read.metrics[line.name] = Metric(line.name)
        if metric is None:
            read.left_out += 1
        else:
            metric.add(line)
    for metric in read.metrics.values():
        metric.trim()
    read.metrics = dict(sorted(read.metrics.items()))
    return read


def pass_on(logs: Path, parent_logs: Path, *, step: str, prefix: str = "") -> None:
    """Write the metrics of a step to the logs of its pipeline, with a prefix before their names; again, the same.

    Raises:
        OSError: they can't be written.
    """
    lines = [
        msgspec.json.encode(
            msgspec.structs.replace(point, name=(prefix + point.name)[:_MAX_NAME], source="", process="")
        )
        for metric in read_metrics(logs).metrics.values()
        for point in metric.points
    ]
    if lines:
        path = Logs(parent_logs).user_metrics / step / "steps.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, b"\n".join(lines) + b"\n")


def _lines(logs: Path) -> Iterator[_Line]:
    decoder = msgspec.json.Decoder(_Line)
    left = _MAX_BYTES
    for source, name in _files(logs):
        data = _content(logs, f"user/metrics/{source}/{name}", left)
        left -= len(data)
        for text in data.splitlines():
            try:
                line = decoder.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            if len(line.name) <= _MAX_NAME:
                yield msgspec.structs.replace(line, source=source, process=name.removesuffix(".jsonl"))


def _files(logs: Path) -> Iterator[tuple[str, str]]:
    """The source and the name of each file, as far as there may be."""
    count = 0
    for source in _names(logs, "user/metrics"):
        for name in _names(logs, f"user/metrics/{source}"):
            if name.endswith(".jsonl"):
                count += 1
                if count > _MAX_FILES:
                    return
                yield source, name


def _names(logs: Path, folder: str) -> list[str]:
    try:
        fd = open_beneath(logs, folder, os.O_RDONLY | os.O_DIRECTORY)
    except (NotFound, UnsafePath):
        return []
    try:
        with os.scandir(fd) as scan:
            names = [entry.name for entry in scan]
        return sorted(name for name in names if name.isascii() and name.isprintable() and name[0] != ".")
    except OSError:
        return []
    finally:
        os.close(fd)


def _content(logs: Path, path: str, limit: int) -> bytes:
    """What is in a file, if it is a regular one that has no other name; at most so many bytes."""
    try:
        fd = open_beneath(logs, path)
    except (NotFound, UnsafePath):
        return b""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return b""
        return os.pread(fd, min(limit, status.st_size), 0)
    except OSError:
        return b""
    finally:
        os.close(fd)
