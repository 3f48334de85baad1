"""The metrics of a job, as the API shows them."""

from __future__ import annotations

import math
from pathlib import Path

from parallelrun_api.views.shown import rfc3339
from parallelrun_core.answers import reports as answers
from parallelrun_core.folder.metrics import LoggedMetric, read_metrics

_LAST_TIME = 253_402_300_799.0
"""The end of the year 9999: a node's clock, or a script that has written the file, may say anything."""


def metric_report(logs: Path) -> answers.MetricReport:
    """All that was logged so far, as far as there may be."""
    read = read_metrics(logs)
    items = [_shown(metric) for metric in (*read.metrics.values(), *read.notes)]
    return answers.MetricReport(items=items, left_out=read.left_out)


def _shown(metric: LoggedMetric) -> answers.Metric:
    points = [
        answers.MetricPoint(
            time=rfc3339(min(max(point.time, 0.0), _LAST_TIME) if math.isfinite(point.time) else 0.0),
            value=point.value,
            step=point.step,
            source=point.source,
            process=point.process,
        )
        for point in metric.points
    ]
    return answers.Metric(name=metric.name, kind=metric.kind, count=metric.count, points=points)
