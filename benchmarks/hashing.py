"""Real work: files of 64 KB, sha256 twenty times over each, 10 files in each mini-batch, 2 workers that are warm.

The clock runs from the first run() to the last commit. CPU efficiency is the CPU of a single loop over all CPU that a
system used for the same files, in the same round: ours from the submission to the finished output, Redis included; for
the others, `multiprocessing.Pool` and, at full size, joblib (loky) and Ray actors if `rivals/` can run them here, only
the work.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread, cpu_seconds
from benchmarks.rivals import compare as rivals
from benchmarks.rivals.work import EACH, WORKERS, hash_files, mini_batches_of
from parallelrun_core.folder.decisions import read_decisions

_BYTES = 65_536
_SCRIPT = """\
from hashlib import sha256

def hash_file(path):
    with open(path, "rb") as file:
        data = file.read()
    for _ in range(20):
        digest = sha256(data).hexdigest()
    return f"{path} {digest}"

def run(mini_batch):
    return [hash_file(path) for path in mini_batch]
"""
_RIVALS = {"joblib": "joblib_loky", "Ray actors": "ray_actors"}
"""Modules in `rivals/`."""


def run_loop(work: list[list[str]]) -> Figures:
    """A plain loop in one process."""
    cpu, began = time.process_time(), time.perf_counter()
    for paths in work:
        hash_files(paths)
    return {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


def run_pool(work: list[list[str]]) -> Figures:
    """One round of multiprocessing.Pool."""
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        pool.map(len, [[]] * 4)
        cpu, began = cpu_seconds([os.getpid()]), time.perf_counter()
        rows = sum(len(rows) for rows in pool.imap_unordered(hash_files, work, chunksize=1))
        wall = time.perf_counter() - began
        used = cpu_seconds([os.getpid()]) - cpu
    if rows != sum(map(len, work)):
        raise RuntimeError(f"multiprocessing.Pool: {rows} rows")
    return {"wall_s": wall, "cpu_s": used}


def run_ours(jobs: Jobs, folder: Path, files: int) -> Figures:
    """One job."""
    done = jobs.run(folder, rows=files, mini_batch_size=EACH)
    first = min(outcome.started for outcome in read_decisions(done.folder.path))
    last = max(log.stat().st_mtime for log in done.folder.path.glob("decisions.*"))  # the last commit, made durable
    parts = {f"{name}_cpu_s": seconds for name, seconds in done.cpu_by.items()}
    return {"wall_s": last - first, "cpu_s": done.cpu_s, "job_s": done.wall_s, **parts}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds, files = {"tiny": (1, 100), "quick": (3, 4_000), "full": (7, 40_000)}[size]
    folder = data.files(files, _BYTES)
    work = mini_batches_of(folder, files)
    with Jobs(_SCRIPT, processes=WORKERS) as jobs:
        systems: dict[str, Callable[[], Figures]] = {
            "single loop": lambda: run_loop(work),
            "ParallelRun": lambda: run_ours(jobs, folder, files),
            "multiprocessing.Pool": lambda: run_pool(work),
        }
        if size == "full" and rivals.available():
            systems |= {
                name: lambda module=module: rivals.measure(module, "hashing", folder, files)  # type: ignore[misc]
                for name, module in _RIVALS.items()
            }
        run_loop(work)  # warms the page cache for everybody
        found = Comparison(systems).run(rounds)
    print(found.table())
    others = [name for name in systems if name not in ("single loop", "ParallelRun")]
    best = [min(wall) for wall in zip(*(found.values(name, "wall_s") for name in others), strict=True)]
    ratios = Spread.of(ours / theirs for ours, theirs in zip(found.values("ParallelRun", "wall_s"), best, strict=True))
    last: dict[str, object] = {"files": files, "rounds": rounds, **ratios.fields("wall_to_best")}
    for name in ("ParallelRun", *others):
        key = "" if name == "ParallelRun" else name.split(".")[-1].lower().replace(" ", "_") + "_"
        last[f"{key}wall_s"] = f"{found.spread(name, 'wall_s').median:.2f}"
        last |= found.ratio("single loop", name, "cpu_s").fields(f"{key}cpu_efficiency", 3)
    for part in ("agent", "workers", "redis", "master", "api", "concatenator"):
        last[f"{part}_cpu_s"] = f"{found.spread('ParallelRun', f'{part}_cpu_s').median:.2f}"
    return last
