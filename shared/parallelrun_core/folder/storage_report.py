"""logs/sys/storage/<node>.<process>.csv: what one process has asked of object stores while it worked for a job, and
what its node has read from the file systems of the job's folders meanwhile.

Each process has a file of its own, which is written whole each time: its figures are sums since its first line's
`Since`, and no two files count the same request for one job.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from parallelrun_core.durable_files import replace_file
from parallelrun_core.layout import Logs
from parallelrun_core.storage.local.kernel_counts import Counts, KernelCounts, counts_of, mounts_of
from parallelrun_core.storage.objects.meters import Reading, RequestCounts, reading, since
from parallelrun_core.untrusted.sanitize import csv_cell

COLUMNS: Final = {
    "Node": "node", "Store": "store", "Operation": "operation", "Since": "since", "Until": "until",
    "Requests": "requests", "Bytes": "bytes", "Failures": "failures", "Throttled": "throttled", "Retries": "retries",
    "Latency P50 (ms)": "p50_ms", "Latency P95 (ms)": "p95_ms", "Latency P99 (ms)": "p99_ms",
    "Latency Mean (ms)": "mean_ms",
}  # fmt: skip
"""Column → field of the REST API's answer."""
_PERCENTILES: Final = (0.50, 0.95, 0.99)


class RequestReport:
    """The requests of this process to stores from the construction on; `write()` writes them down, and so does the end
    of a `with`. What can't be written is lost, and fails nothing.

    Args:
        logs: the job's.
        node: a node's name; or the service that this process is.
        folders: those that the job reads on this node.
    """

    def __init__(self, logs: Path, node: str, folders: Iterable[str] = ()) -> None:
        self._before = reading()
        self._mounts = mounts_of(folders)
        self._counts_before = counts_of(self._mounts)
        self._counts_written: Counts = {}
        self._written: Reading = {}
        self._node = node
        self._since = _now()
        self._path = Logs(logs).storage / f"{node}.{self._since.replace(':', '')}-{os.getpid()}.csv"

    @property
    def has_requests(self) -> bool:
        """Return whether anything was asked of an object store."""
        return bool(since(self._before))

    def write(self) -> None:
        """Write all of it; nothing if nothing was asked since the last time."""
        requests, counts = since(self._before), self._counts()
        if (requests, counts) != (self._written, self._counts_written):
            with suppress(OSError):
                self._write(requests, counts)
            self._written, self._counts_written = requests, counts

    def _counts(self) -> Counts:
        now = {key: each.minus(self._counts_before.get(key, each)) for key, each in counts_of(self._mounts).items()}
        return {key: each for key, each in now.items() if each.requests > 0}

    def __enter__(self) -> RequestReport:
        return self

    def __exit__(self, *_: object) -> None:
        self.write()

    def _write(self, requests: Reading, counts: Counts) -> None:
        now = _now()
        lines = [",".join(COLUMNS)]
        for (store, operation), each in sorted(requests.items()):
            cells = [self._node, csv_cell(store), operation, self._since, now, *_figures(each)]
            lines.append(",".join(cells))
        for (label, kind), count in sorted(counts.items()):
            lines.append(",".join([self._node, csv_cell(label), kind, self._since, now, *_figures_of_kernel(count)]))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, ("\n".join(lines) + "\n").encode(errors="replace"))


def fields_of(text: str) -> Iterator[dict[str, str]]:
    """The lines of such a file as fields; what isn't a line of ours has other ones, or none."""
    for row in csv.DictReader(text.splitlines()):
        yield {field: cell for column, field in COLUMNS.items() if (cell := row.get(column))}


def _figures(counts_of_operation: RequestCounts) -> list[str]:
    counts = (
        counts_of_operation.requests,
        counts_of_operation.bytes,
        counts_of_operation.failures,
        counts_of_operation.throttled,
        counts_of_operation.retries,
    )
    mean_s = counts_of_operation.seconds / max(1, sum(counts_of_operation.latencies))
    latencies = (*(counts_of_operation.latency_s(share) for share in _PERCENTILES), mean_s)
    return [*map(str, counts), *(f"{1000 * each:.3f}" for each in latencies)]


def _figures_of_kernel(count: KernelCounts) -> list[str]:
    """The cells of a count of the kernel's: the sum of the latencies is known, and none of them by itself."""
    figures = (count.requests, count.bytes, count.failures, 0, count.retries)
    return [*map(str, figures), *("" for _ in _PERCENTILES), f"{1000 * count.seconds / count.requests:.3f}"]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
