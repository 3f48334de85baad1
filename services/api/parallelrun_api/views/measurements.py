"""Measurements of a job, as the API shows them: metrics that its script has logged, and requests to object stores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers import reports as answers
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.answers.reports import StorageReport, StorageRequests
from parallelrun_core.folder.metrics import LoggedMetric, read_metrics
from parallelrun_core.folder.storage_report import fields_of

_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 256 << 10
"""Of one; hundreds of stores."""


def storage_report(served: ServedFolder) -> StorageReport:
    """Return what all of them say, by node. What isn't a report, or is gone, is left out."""
    paths = [entry.path for entry in islice(served.files(), _MOST_FILES)]
    return StorageReport(items=[item for path in paths for item in _items(served, path)])


def _items(served: ServedFolder, path: str) -> Iterator[StorageRequests]:
    for fields in fields_of(served.head(path, _MOST_BYTES).decode(errors="replace")):
        try:
            yield msgspec.convert(fields, StorageRequests, strict=False)
        except msgspec.ValidationError:
            continue


_LAST_TIME = 253_402_300_799.0
"""The end of the year 9999: a node's clock, or a script that has written the file, may say anything."""


def metric_report(logs: Path) -> answers.MetricReport:
    """All that was logged so far, as far as there may be."""
    read = read_metrics(logs)
    items = [_shown(metric) for metric in (*read.metrics.values(), *read.notes)]
    return answers.MetricReport(items=items, left_out=read.left_out)


def _shown(metric: LoggedMetric) -> answers.Metric:
    points = [
        answer_of(
            answers.MetricPoint,
            point,
            time=rfc3339(min(max(point.time, 0.0), _LAST_TIME) if math.isfinite(point.time) else 0.0),
        )
        for point in metric.points
    ]
    return answers.Metric(name=metric.name, kind=metric.kind, count=metric.count, points=points)
