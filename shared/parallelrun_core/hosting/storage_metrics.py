"""Metrics of a process's requests to object stores, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from parallelrun_core.storage.objects.meters import BOUNDS, Reading, reading

_LABELS: Final = ("store", "operation")
_COUNTERS: Final = {
    "requests": "Requests to object stores.",
    "bytes": "Of objects, received or sent.",
    "failures": "Calls to object stores that failed in the end.",
    "throttled": "Of those, the ones to stores that had too much to do.",
    "retries": "Requests that had to be repeated, as far as that is known.",
}
"""Field of `Asked` → what it is."""


class StorageCollector(Collector):
    """Asks for the counts at each scrape. There are no more than some dozens of stores (see `meters`)."""

    def __init__(self, counts: Callable[[], Reading] = reading) -> None:
        self._counts = counts

    def describe(self) -> Iterable[Any]:
        """Nothing: what is counted is known when it has been."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All counters, and how long calls took."""
        counts = self._counts()
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"parallelrun_storage_{name}", text, labels=_LABELS)
            for labels, requests in counts.items():
                counter.add_metric(labels, getattr(requests, name))
            yield counter
        seconds = HistogramMetricFamily("parallelrun_storage_seconds", "How long calls took.", labels=_LABELS)
        ends = [*map(str, BOUNDS), "+Inf"]
        for labels, requests in counts.items():
            buckets = list(zip(ends, accumulate(requests.latencies), strict=True))
            seconds.add_metric(labels, buckets, requests.seconds)
        yield seconds
