"""Many jobs of two mini-batches each, submitted at once over HTTP to a warm cluster of two nodes with two workers each.

- `jobs_per_s`: from the first submission to the end of the last job; `accepted_per_s`: answers of 202 while they come,
  each durable as promised.
- CPU milliseconds of all processes for each job, and of each service.
- `folder_kb`, `folder_files` and `folder_folders`: what one job that has ended takes on the disk, in whole blocks.
- `nodes_per_job`: how many nodes worked for a job, by its sessions.

`calibration` is the CPU time, in seconds, of the import line of the benchmark `cold`.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import Size, cold, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Figures, Spread
from benchmarks.noop import SCRIPT
from parallelrun_core.folder.job_folder import JobFolder

_JOBS = {"tiny": 4, "quick": 200, "full": 2000}
_ROUNDS = {"tiny": 1, "quick": 3, "full": 5}
_CLIENTS = 8
_POLL_S = 0.05


def _burst(jobs: Jobs, folder: Path, count: int) -> tuple[Figures, list[str]]:
    """Submit so many jobs at once, and wait for all of them; returns what was measured, and their ids."""
    jobs.settle()
    before, began = jobs.cpu_by(), time.perf_counter()
    with ThreadPoolExecutor(_CLIENTS) as clients:
        job_ids = list(clients.map(lambda _: jobs.start(folder, mini_batch_size=1), range(count)))
    accepted_s = time.perf_counter() - began
    waiting = [JobFolder(jobs.cluster.layout.root, job_id) for job_id in job_ids]
    while waiting := [each for each in waiting if each.result() is None]:
        time.sleep(_POLL_S)
    wall_s = time.perf_counter() - began
    jobs.settle()
    used = {name: seconds - before[name] for name, seconds in jobs.cpu_by().items()}
    sessions = sum(len(list(JobFolder(jobs.cluster.layout.root, job_id).journals.iterdir())) for job_id in job_ids)
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
