"""What a mini-batch costs when run() does nothing: 10 short paths each, 2 workers, all defaults on.

Ours: the embedded cluster with AOF everysec; the clock runs from the submission over HTTP to the finished output file,
listing, syncing and concatenation included. Beside it, in turn: `multiprocessing.Pool.imap_unordered(chunksize=1)` with
two processes, which keeps nothing and syncs nothing, its results written to one file; at full size also Ray Data
(`map_batches`, two actors) and Celery (Redis as broker, `acks_late`, two processes), by the harness in `peers.py`.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import Size, data, peers
from benchmarks.jobs import Jobs, check
from benchmarks.measure import Comparison, Figures, cpu_seconds

PATHS = 10
WORKERS = 2
SCRIPT = "def run(mini_batch):\n    return mini_batch\n"
_OTHERS = {"Ray Data": ("ray", "ray_data", 20_000), "Celery": ("celery", "celery_redis", 5_000)}
"""Environment and module in the harness, and how many mini-batches each gets."""
_KEYS = {"ParallelRun": "", "multiprocessing.Pool": "pool_", "Ray Data": "ray_data_", "Celery": "celery_"}


def echo(paths: list[str]) -> list[str]:
    """What the workers of the pool run."""
    return paths


def run_pool(folder: Path, mini_batches: int, output: Path) -> Figures:
    """One round of multiprocessing.Pool."""
    paths = [f"{folder}/img_{number:07d}.jpg" for number in range(mini_batches * PATHS)]
    work = [paths[first : first + PATHS] for first in range(0, len(paths), PATHS)]
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        list(pool.imap_unordered(echo, work[:100]))
        cpu, began = cpu_seconds([os.getpid()]), time.perf_counter()
        with output.open("w") as file:
            for rows in pool.imap_unordered(echo, work, chunksize=1):
                file.write("\n".join(rows) + "\n")
        wall = time.perf_counter() - began
        used = cpu_seconds([os.getpid()]) - cpu
    check(output, mini_batches * PATHS)
    return {"per_s": mini_batches / wall, "cpu_us": used / mini_batches * 1e6}


def run_ours(jobs: Jobs, folder: Path, mini_batches: int, look_ahead: bool) -> Figures:
    """One round of ours: a job, from its submission to its output."""
    done = jobs.run(folder, rows=mini_batches * PATHS, mini_batch_size=PATHS, look_ahead=look_ahead)
    parts = {f"{name}_us": seconds / mini_batches * 1e6 for name, seconds in done.cpu_by.items()}
    return {"per_s": mini_batches / done.wall_s, "cpu_us": done.cpu_s / mini_batches * 1e6, **parts}


def run_other(name: str) -> Figures:
    """One round of a system that the harness measures."""
    environment, module, mini_batches = _OTHERS[name]
    found = peers.measure(environment, module, "w1", "--n", str(mini_batches))
    return {"per_s": found["per_s"], "cpu_us": found["cpu_us_per_batch"]}


def compare(mini_batches: int, rounds: int, *, look_ahead: bool, others: bool) -> dict[str, object]:
    """Measure; returns what the last line says."""
    folder = data.files(mini_batches * PATHS)
    with Jobs(SCRIPT, processes=WORKERS) as jobs:
        systems: dict[str, Callable[[], Figures]] = {
            "ParallelRun": lambda: run_ours(jobs, folder, mini_batches, look_ahead),
            "multiprocessing.Pool": lambda: run_pool(folder, mini_batches, jobs.home / "pool.txt"),
        }
        if others and peers.available():
            systems |= {name: lambda name=name: run_other(name) for name in _OTHERS}  # type: ignore[misc]
        systems["ParallelRun"]()  # warms the page cache for everybody
        found = Comparison(systems).run(rounds)
    print(found.table())
    last: dict[str, object] = {"mini_batches": mini_batches, "rounds": rounds}
    for name, key in _KEYS.items():
        if name in systems:
            last |= found.spread(name, "cpu_us").fields(f"{key}cpu_us", 1)
            last |= found.spread(name, "per_s").fields(f"{key}per_s", 0)
            if key:
                last |= found.ratio("ParallelRun", name, "per_s").fields(f"ratio_to_{key[:-1]}")
    for part in ("agent", "workers", "redis", "master", "api"):
        last[f"{part}_us"] = f"{found.spread('ParallelRun', f'{part}_us').median:.1f}"
    return last


def main(size: Size) -> dict[str, object]:
    """With look-ahead, as by default."""
    mini_batches, rounds = {"tiny": (500, 1), "quick": (20_000, 3), "full": (100_000, 7)}[size]
    return compare(mini_batches, rounds, look_ahead=True, others=size == "full")
