"""Many jobs of two mini-batches each, submitted at once over HTTP to a warm cluster of two nodes with two workers each.

- `jobs_per_s`: from the first submission to the end of the last job; `accepted_per_s`: answers of 202 while they come,
  each durable as promised. They come over eight connections, each with an idempotency key as from our client, but
  without its work for each request: client and services share the CPUs.
- CPU milliseconds of all processes for each job, and of each service.
- `folder_kb`, `folder_files` and `folder_folders`: what one job that has ended takes on the disk, in whole blocks.
- `nodes_per_job`: how many nodes worked for a job, by its sessions.

`calibration` is the CPU time, in seconds, of the import line of the benchmark `cold`.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import Size, cold, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Figures, Spread
from benchmarks.noop import SCRIPT
from parallelrun_core.folder.job_folder import JobFolder

_JOBS = {"tiny": 4, "quick": 200, "full": 2000}
_ROUNDS = {"tiny": 1, "quick": 3, "full": 5}
_CLIENTS = 8
_POLL_S = 0.02


class _Connections:
    """Connections to the API of a cluster, over which jobs are submitted side by side."""

    def __init__(self, jobs: Jobs, folder: Path) -> None:
        self._address = urlsplit(jobs.cluster.url).netloc
        self._headers = {"Authorization": f"Bearer {jobs.cluster.token}", "Content-Type": "application/json"}
        self._body = json.dumps(jobs.spec(folder, mini_batch_size=1))
        self._free: queue.SimpleQueue[http.client.HTTPConnection] = queue.SimpleQueue()

    def submit(self, count: int) -> list[str]:
        """Submit so many jobs; returns their ids."""
        for _ in range(_CLIENTS):
            self._free.put(http.client.HTTPConnection(self._address))
        with ThreadPoolExecutor(_CLIENTS) as clients:
            job_ids = list(clients.map(lambda _: self._submit(), range(count)))
        for _ in range(_CLIENTS):
            self._free.get().close()
        return job_ids

    def _submit(self) -> str:
        connection = self._free.get()
        connection.request("POST", "/v1/jobs", self._body, self._headers | {"Idempotency-Key": secrets.token_hex(16)})
        answer = connection.getresponse()
        content = answer.read()
        self._free.put(connection)
        if answer.status != http.HTTPStatus.ACCEPTED:
            raise RuntimeError(f"{answer.status}: {content.decode()}")
        return str(json.loads(content)["id"])


def _burst(jobs: Jobs, folder: Path, count: int) -> tuple[Figures, list[str]]:
    """Submit so many jobs at once, and wait for all of them; returns what was measured, and their ids."""
    jobs.settle()
    before, began = jobs.cpu_by(), time.perf_counter()
    job_ids = _Connections(jobs, folder).submit(count)
    accepted_s = time.perf_counter() - began
    for job_id in job_ids:  # one after the other: the CPUs are the cluster's
        while not JobFolder(jobs.cluster.layout.root, job_id).has_ended:
            time.sleep(_POLL_S)
    wall_s = time.perf_counter() - began
    jobs.settle()
    used = {name: seconds - before[name] for name, seconds in jobs.cpu_by().items()}
    parts = (part for job_id in job_ids for part in JobFolder(jobs.cluster.layout.root, job_id).parts.iterdir())
    sessions = len({(part.parent, part.stem) for part in parts})
    figures = {
        "jobs_per_s": count / wall_s,
        "accepted_per_s": count / accepted_s,
        "cpu_ms": 1000 * sum(used.values()) / count,
        "nodes_per_job": sessions / count,
        **{f"{name}_ms": 1000 * seconds / count for name, seconds in used.items()},
    }
    return figures, job_ids


def _size(folder: Path) -> tuple[int, int, int]:
    """Return the KiB that a folder takes on the disk, its files, and its folders."""
    blocks = os.lstat(folder).st_blocks
    file_count = folder_count = 0
    for parent, folders, files in os.walk(folder):
        blocks += sum(os.lstat(os.path.join(parent, name)).st_blocks for name in [*folders, *files])
        file_count, folder_count = file_count + len(files), folder_count + len(folders)
    return blocks // 2, file_count, folder_count


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    count, folder = _JOBS[size], data.files(2)
    with Jobs(SCRIPT, nodes=2, processes=2) as jobs:
        _burst(jobs, folder, 4)
        rounds = []
        for number in range(_ROUNDS[size]):
            figures, job_ids = _burst(jobs, folder, count)
            rounds.append(figures)
            shown = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
            print(f"  round {number + 1}: {shown}", flush=True)
        kib, files, folders = _size(JobFolder(jobs.cluster.layout.root, job_ids[0]).path)
    spreads = {name: Spread.of(each[name] for each in rounds) for name in rounds[0]}
    medians = {name: f"{each.median:.2f}" for name, each in spreads.items()}
    return {
        "jobs": count,
        "rounds": len(rounds),
        **medians,
        **spreads["jobs_per_s"].fields("jobs_per_s", 1),
        **spreads["accepted_per_s"].fields("accepted_per_s", 1),
        **spreads["cpu_ms"].fields("cpu_ms", 0),
        "folder_kb": kib,
        "folder_files": files,
        "folder_folders": folders,
        "calibration": f"{cold.import_line()['cpu_s']:.2f}",
    }
