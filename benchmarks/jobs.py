"""Whole jobs on an embedded cluster, from submission over HTTP to the finished output: time and CPU."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.measure import cpu_seconds, own_cpu_seconds
from parallelrun.client import Client
from parallelrun.embedded.cluster import Cluster
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult


@dataclass(frozen=True)
class Run:
    """One job that has completed."""

    folder: JobFolder
    result: JobResult
    wall_s: float
    """From the submission to the end, as the client sees both."""
    cpu_s: float
    """Of all processes and Redis, until the last worker is gone."""
    cpu_by: dict[str, float]
    """The same by service: `agent` and its `workers`, `master` with the job's leader."""


class Jobs:
    """An embedded cluster with default settings that runs one job after another, in a `with` statement."""

    def __init__(self, script: str, *, nodes: int = 1, processes: int = 2) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="parallelrun-bench-")
        self.home = Path(self._scratch.name)
        self._code = self.home / "code"
        self._code.mkdir()
        (self._code / "entry.py").write_text(script)
        self.cluster = Cluster(self.home / "cluster", nodes=nodes, processes=processes)
        self.client: Client

    def __enter__(self) -> Self:
        self.cluster.start()
        self.client = self.cluster.client()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.cluster.stop()
        self._scratch.cleanup()

    def cpu_by(self) -> dict[str, float]:
        """CPU seconds that each service has used so far, with all its children; `workers` are those of all nodes."""
        pids = self.cluster.pids()
        used = {name: cpu_seconds([pid]) for name, pid in pids.items()}
        nodes = [name for name in pids if name.startswith("node")]
        used["agent"] = sum(own_cpu_seconds(pids[node]) for node in nodes)
        used["workers"] = max(0.0, sum(used.pop(node) for node in nodes) - used["agent"])
        return used

    def spec(self, data: Path, **more: Any) -> dict[str, Any]:
        """The spec of a job."""
        return {"code": str(self._code), "entry_script": "entry.py", "inputs": {"data": {"path": str(data)}}, **more}

    def start(self, data: Path, **spec: Any) -> str:
        """Submit a job; returns its id."""
        return self.client.jobs.create(self.spec(data, **spec), upload_code=False).id

    def run(self, data: Path, *, rows: int | None = None, **spec: Any) -> Run:
        """Run a job to its end. Its files stay until the whole is over.

        Raises:
            RuntimeError: it did not complete, or its output hasn't so many different rows.
        """
        self.settle()
        before, began = self.cpu_by(), time.perf_counter()
        job = self.client.jobs.wait(self.start(data, **spec))
        wall = time.perf_counter() - began
        self.settle()
        used = {name: seconds - before[name] for name, seconds in self.cpu_by().items()}
        folder = JobFolder(self.cluster.layout.root, job.id)
        result = folder.result()
        if result is None or not result.output:
            raise RuntimeError(f"job {job.id} has no output: {job.failure}")
        if rows is not None:
            check(Path(result.output), rows)
        return Run(folder, result, wall, sum(used.values()), used)

    def settle(self) -> None:
        """Until no worker of an earlier job is left, so that its CPU is counted where it belongs."""
        while any(node.jobs for node in self.client.nodes.list()):
            time.sleep(0.05)


def check(output: Path, rows: int) -> None:
    """Check that every row is there.

    Raises:
        RuntimeError: the output hasn't so many different rows; a row is the path of a file, whatever its folder.
    """
    with output.open() as lines:
        found = {os.path.basename(line) for line in lines}
    if len(found) != rows:
        raise RuntimeError(f"{output}: {len(found):,} different rows, not {rows:,}")
