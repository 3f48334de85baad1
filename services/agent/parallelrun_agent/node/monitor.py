"""The resource usage of a node while it works for a job: tables below logs/sys/perf/<node>/ (reference §5.2, tuning
guide).

In a thread of its own, which sleeps nearly all the time. Nothing waits for it, and what it can't write is lost.
"""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from parallelrun_agent.node.nvml import GpuMeter
from parallelrun_agent.node.usage import (
    DISK_COLUMNS,
    GPU_COLUMNS,
    NODE_COLUMNS,
    PROCESS_COLUMNS,
    Cpu,
    KernelCounters,
    ProcessTable,
    disk_rows,
    gpu_rows,
    node_row,
    worker_rows,
)
from parallelrun_agent.users.worker_user import SAME_USER, WorkerUser
from parallelrun_core.folder.storage_report import RequestReport
from parallelrun_core.service.threads import started_thread
from parallelrun_core.untrusted.sanitize import csv_cell

_FIRST_SAMPLE_S = 1.0
_PROCESSES_EVERY_S = 60.0
_HOURS_KEPT = 4
_MAX_BYTES = 64 << 20


class ResourceMonitor:
    """Works from its construction to `stop()`.

    Args:
        folder: where the tables go.
        interval_s: between two samples; 0: none are taken.
        workers: the process ids of the job's workers, by name. Called in the monitor's thread.
        user: who they are.
        storage: what the node asks of object stores for the job.
        gpus: those that workers get, as CUDA_VISIBLE_DEVICES names them.
    """

    def __init__(
        self,
        folder: Path,
        interval_s: float,
        workers: Callable[[], dict[str, int]],
        *,
        user: WorkerUser = SAME_USER,
        storage: RequestReport | None = None,
        gpus: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._interval_s = interval_s
        self._workers = workers
        self._user = user
        self._storage = storage
        self._gpus = GpuMeter(gpus)
        self._stopped = threading.Event()
        self._takes_last = True
        self._cpu = Cpu()
        self._processes = ProcessTable()
        self._thread: threading.Thread | None = None
        if interval_s:
            self._thread = started_thread("resources", self._watch)

    def stop(self, *, takes_sample: bool = True) -> None:
        """Take a last sample, unless the first one wasn't due yet, and end.

        Args:
            takes_sample: whether there is anything to say; not of a node that has never had a worker for the job.
        """
        self._takes_last = takes_sample
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        self._cpu.percent()
        kernel = KernelCounters()
        sample_at = time.monotonic() + min(_FIRST_SAMPLE_S, self._interval_s)
        dump_at = time.monotonic() + _PROCESSES_EVERY_S
        has_table = False
        while not self._stopped.wait(max(0.0, min(sample_at, dump_at) - time.monotonic())):
            now = time.monotonic()
            if now >= sample_at:
                sample_at = now + self._interval_s
                if not has_table:  # not before: it takes long, and many jobs are over by then
                    self._processes.refresh()
                    has_table = True
                self._sample(kernel)
            if now >= dump_at:
                dump_at = now + _PROCESSES_EVERY_S
                self._dump()
        if self._takes_last and has_table:
            self._sample(kernel)
        elif self._takes_last and self._storage is not None and self._storage.has_requests:
            self._storage.write()

    def _sample(self, kernel: KernelCounters) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
        # The system may refuse any of these, once or for good.
        with suppress(OSError, psutil.Error, RuntimeError):
            row = [now, *node_row(self._cpu.percent()), *kernel.cells(), csv_cell(socket.gethostname())]
            self._add("node_resource_usage.csv", NODE_COLUMNS, [row])
        with suppress(OSError, psutil.Error, RuntimeError):
            self._add("node_disk_usage.csv", DISK_COLUMNS, [[now, *row] for row in disk_rows()])
        if gpus := gpu_rows(self._gpus.uses()):
            with suppress(OSError):
                self._add("node_gpu_usage.csv", GPU_COLUMNS, [[now, *row] for row in gpus])
        with suppress(OSError, psutil.Error, RuntimeError):
            with self._user.acting():  # others can't see what a process reads and writes
                rows = worker_rows(self._workers(), self._processes, self._gpus.process_bytes())
            self._add("processes_resource_usage.csv", PROCESS_COLUMNS, [[now, *row] for row in rows])
        if self._storage is not None:
            self._storage.write()

    def _add(self, name: str, columns: tuple[str, ...], rows: list[list[str]]) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            if not file.tell():
                file.write(",".join(columns) + "\n")
            if file.tell() < _MAX_BYTES:
                file.writelines(",".join(row) + "\n" for row in rows)

    def _dump(self) -> None:
        """All processes of the node, once a minute; the files of the last hours are kept."""
        now = datetime.now(UTC)
        hours = self._folder / "processes_cpu_memory_usage"
        path = hours / f"{now:%Y%m%d%H}" / f"processes_{now:%M}"
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._processes.text(now.isoformat(timespec="seconds")), encoding="utf-8")
            for old in sorted(hours.iterdir())[:-_HOURS_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
