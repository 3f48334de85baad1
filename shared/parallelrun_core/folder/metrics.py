"""The metrics that the entry scripts of a job have logged: `logs/user/metrics/<source>/<process>.jsonl`.

A source is a node; of a pipeline, the name of a step that passes its metrics on. Each worker process has a file of its
own (`worker/script_api/metrics.py` writes it), whose lines are JSON objects. Workers may be other users, and scripts
may write anything there: so links are not followed, what isn't a metric is left out, and all that is read has a limit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from parallelrun_core.durable_files import replace_file
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.layout import Logs
from parallelrun_core.untrusted.paths import open_beneath

MAX_NAMES: Final = 500
MAX_POINTS: Final = 500
"""Of each metric: the last ones."""
_MAX_WEIGHT: Final = 16 << 20
"""Bytes of memory that all points may take; each metric has an equal share of them."""
_MAX_FILES: Final = 4_096
_MAX_BYTES: Final = 32 << 20
"""Of all files together."""
_MAX_LINES: Final = 500_000
"""Of all files together."""
_MAX_LINE: Final = 36 << 10
"""What a worker writes at most, and a longer name of a pipeline."""
_MAX_DEPTH: Final = 32
"""Lists and mappings in each other."""
_MAX_NAME: Final = 255
_CHUNK: Final = 256 << 10
_WEIGHTS: Final = {b"{": 200, b"[": 100, b":": 100, b",": 64}
"""Bytes of memory that a value may take for each of these in its text."""
_OF_A_POINT: Final = 300
_MAX_RECORDED: Final = 50
_OF_MLFLOW: Final = "mlflow."
"""What tags begin with that MLflow's client sets by itself."""
_MAX_TEXT: Final = 200

Kind = Literal["metric", "param", "tag"]
"""Params and tags are texts that a script has logged with MLflow."""
Value = None | bool | int | float | str | list[Any] | dict[str, Any]


class MetricValue(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    time: float
    """Seconds since the epoch, by the clock of the node."""
    name: str = ""
    value: Value = None
    step: int | None = None
    source: str = ""
    process: str = ""


class _Line(MetricValue, kw_only=True, frozen=True, omit_defaults=True):
    time: float = 0.0
    dropped: int = 0
    param: str = ""
    tag: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        """The kind and the name of the value; the name is empty if it has none."""
        if self.name:
            return "metric", self.name
        return ("param", self.param) if self.param else ("tag", self.tag)


@dataclass
class LoggedMetric:
    """The points that were logged under one name."""

    name: str
    count: int = 0
    """Number of values."""
    points: list[MetricValue] = field(default_factory=list)
    """The last ones, in the order of their times."""
    kind: Kind = "metric"

    @property
    def last(self) -> Value:
        return self.points[-1].value


@dataclass
class Metrics:
    metrics: dict[str, LoggedMetric] = field(default_factory=dict)
    notes: list[LoggedMetric] = field(default_factory=list)
    """Params and tags, by name."""
    left_out: int = 0
    """Values that are not in these, at least: there were too many, or they were too large."""


def last_values(logs: Path) -> dict[str, bool | int | float | str | None]:
    """The last value of each of the first metrics that are no list or mapping, and of params and tags whose names no
    metric has: for the job's record."""
    values: dict[str, bool | int | float | str | None] = {}
    if not Logs(logs).user_metrics.is_dir():  # one call of the file system, if nothing was logged
        return values
    read = read_metrics(logs)
    notes = [note for note in read.notes if not note.name.startswith(_OF_MLFLOW)]
    for metric in (*read.metrics.values(), *notes):
        value, name = metric.last, metric.name
        if not isinstance(value, list | dict) and len(values) < _MAX_RECORDED and name not in values:
            values[name] = value[:_MAX_TEXT] if isinstance(value, str) else value
    return values


def read_metrics(logs: Path) -> Metrics:
    """All metrics of a job, sorted by name. Takes some MiB at most, whatever is in the files."""
    gathered: dict[tuple[Kind, str], _Gathered] = {}
    left_out = 0
    for line, weight in _lines(logs):
        left_out += line.dropped
        key = line.key
        if not key[1]:
            continue
        if key not in gathered:
            if len(gathered) >= MAX_NAMES:
                left_out += 1
                continue
            gathered[key] = _Gathered()
            for each in gathered.values():
                each.trim_if_much(_MAX_WEIGHT // len(gathered))
        gathered[key].add(line, weight, _MAX_WEIGHT // len(gathered))
    read = Metrics(left_out=left_out)
    for (kind, name), each in sorted(gathered.items()):
        each.trim(_MAX_WEIGHT // len(gathered))
        metric = LoggedMetric(name, each.count, [point for point, _ in each.points], kind)
        if not each.points:
            read.left_out += each.count
        elif kind == "metric":
            read.metrics[name] = metric
        elif metric.last is not None:  # a tag that was removed
            read.notes.append(metric)
    return read


@dataclass
class _Gathered:
    """The points of one metric, while more are read."""

    count: int = 0
    points: list[tuple[MetricValue, int]] = field(default_factory=list)
    """Each with its weight."""
    weight: int = 0

    def add(self, point: MetricValue, weight: int, share: int) -> None:
        """Add a point, in any order; `trim` before the points are read."""
        self.count += 1
        self.points.append((point, weight))
        self.weight += weight
        self.trim_if_much(share)

    def trim_if_much(self, share: int) -> None:
        if len(self.points) > 2 * MAX_POINTS or self.weight > 2 * share:
            self.trim(share)

    def trim(self, share: int) -> None:
        """Sort the points, and forget the earliest ones if they are too many, or take more memory than they may."""
        self.points.sort(key=lambda entry: entry[0].time)
        kept_points = self.weight = 0
        for _, weight in reversed(self.points[-MAX_POINTS:]):
            if self.weight + weight > share:
                break
            kept_points += 1
            self.weight += weight
        del self.points[: len(self.points) - kept_points]


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


def _lines(logs: Path) -> Iterator[tuple[_Line, int]]:
    """Return what is in the files, each line with its weight. Lines that are too long, or that there are too many of,
    are counted only."""
    decoder = msgspec.json.Decoder(_Line)
    remaining_bytes, lines_left = _MAX_BYTES, _MAX_LINES
    for source, name in _files(logs):
        process = name.removesuffix(".jsonl")
        for text, is_rest in _texts(logs, f"user/metrics/{source}/{name}"):
            lines_left -= 1
            remaining_bytes -= len(text)
            if remaining_bytes < 0 or lines_left < 0:
                yield _Line(dropped=1), 0
                return
            if is_rest:
                continue
            if len(text) == _MAX_LINE:
                yield _Line(dropped=1), 0
                continue
            try:
                line = decoder.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            if _is_deep(text, line.value):
                yield _Line(dropped=1), 0
            elif len(line.key[1]) <= _MAX_NAME:
                yield msgspec.structs.replace(line, source=source, process=process), _weight(text)


def _weight(text: bytes) -> int:
    """About how many bytes of memory the point takes whose text this is; rather too many."""
    is_wide = not text.isascii() or b"\\u" in text
    parts = sum(text.count(sign) * weight for sign, weight in _WEIGHTS.items())
    return _OF_A_POINT + (4 if is_wide else 1) * len(text) + parts


def _is_deep(text: bytes, value: Value) -> bool:
    """Return whether more lists and mappings are in each other than whoever writes the value again can bear."""
    if text.count(b"[") + text.count(b"{") <= _MAX_DEPTH:
        return False
    level = [value]
    for _ in range(_MAX_DEPTH):
        groups = (each if isinstance(each, list) else each.values() for each in level if isinstance(each, list | dict))
        level = [each for group in groups for each in group]
    return bool(level)


def _files(logs: Path) -> Iterator[tuple[str, str]]:
    """The source and the name of each file, as far as there may be."""
    count = 0
    for source in names_in(logs, "user/metrics"):
        for name in names_in(logs, f"user/metrics/{source}"):
            if name.endswith(".jsonl"):
                count += 1
                if count > _MAX_FILES:
                    return
                yield source, name


def names_in(logs: Path, folder: str) -> list[str]:
    """The plain names in a folder of the logs, in order; none if it isn't there."""
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


def _texts(logs: Path, path: str) -> Iterator[tuple[bytes, bool]]:
    """The lines of a file, if it is a regular one that has no other name; long ones in pieces, and whether a piece is
    not the first one."""
    try:
        fd = open_beneath(logs, path)
    except (NotFound, UnsafePath):
        return
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return
        with open(fd, "rb", buffering=_CHUNK, closefd=False) as file:
            is_rest = False
            while text := file.readline(_MAX_LINE):
                yield text, is_rest
                is_rest = not text.endswith(b"\n")
    except OSError:
        return
    finally:
        os.close(fd)
