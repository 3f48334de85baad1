"""Images through a network: 256 x 256 JPEGs, decoded, resized, classified by a small residual network of torch.

32 images in a mini-batch, two workers, one thread of torch in each, on CPUs. The loop is `multiprocessing.Pool` with
two processes, each of which loads the network when it starts. `wall_to_loop` counts from the first image to the last
row, with the network loaded in both; `whole_to_loop` has starting, too: a job from its submission on a warm cluster,
the loop from the start of its processes. `cpu_to_loop` is of the same whole: in both, the CPU of processes that start,
import torch and load the network is counted. `memory_over_loop_mb` is the memory of all processes of a new cluster
together, their templates included (the sum of their Pss, sampled in a round of its own), beyond that of the loop's.

Needs torch and pillow, which ParallelRun doesn't: without them there is nothing to measure. At full size, Dask, Ray and
joblib take part if torch and pillow are in their environment, too.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import threading
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psutil

from benchmarks import Size, data, image_model
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread, cpu_seconds
from benchmarks.rivals import compare as rivals
from benchmarks.rivals.work import WORKERS, mini_batches_of
from parallelrun_core.folder.decisions import read_decisions

EACH: Final = 32
SCRIPT: Final = f"""\
{Path(image_model.__file__).read_text()}

def init():
    model()

def run(mini_batch):
    return classify(mini_batch)
"""
_RIVALS: Final = {"joblib": "joblib_loky", "Ray Data": "ray_data", "Dask": "dask_distributed"}
_SAMPLE_S = 0.5


def images(count: int) -> Path:
    """Return a folder of this many images, which later runs use again."""
    return data.cached(f"images-{count}", lambda folder: image_model.write_images(folder, count))


def run_loop(work: list[list[str]]) -> Figures:
    """Two processes that take one mini-batch after the other."""
    cpu, started = cpu_seconds([os.getpid()]), time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(WORKERS, initializer=image_model.model) as pool:
        pool.map(image_model.classify, [work[0][:1]] * 2 * WORKERS, chunksize=1)
        began = time.perf_counter()
        rows = [row for rows in pool.imap_unordered(image_model.classify, work, chunksize=1) for row in rows]
        ended = time.perf_counter()
        used = cpu_seconds([os.getpid()]) - cpu  # with the start of the pool, as a job has that of its workers
    if len({row.partition(" ")[0] for row in rows}) != sum(map(len, work)):
        raise RuntimeError(f"the loop has {len(rows):,} rows")
    return {"wall_s": ended - began, "cpu_s": used, "whole_s": ended - started}


def run_job(jobs: Jobs, folder: Path, count: int) -> Figures:
    """One job."""
    done = jobs.run(folder, rows=count, mini_batch_size=EACH)
    first = min(outcome.started for outcome in read_decisions(done.folder.path))
    last = max(log.stat().st_mtime for log in done.folder.path.glob("decisions.*"))  # the last commit, made durable
    return {"wall_s": last - first, "cpu_s": done.cpu_s, "whole_s": done.wall_s}


@contextmanager
def _peak_mb(without: Container[psutil.Process] = ()) -> Iterator[list[float]]:
    """Sample the memory of all that this process has begun, without these; the list has the largest sum afterwards."""
    peak, is_over = [0.0], threading.Event()

    def sample() -> None:
        while not is_over.wait(_SAMPLE_S):
            peak[0] = max(peak[0], sum(_pss_mb(each) for each in _descendants() if each not in without))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()


def _descendants() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _pss_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss / 1e6)
    except psutil.NoSuchProcess:
        return 0.0


def _memory_over_loop_mb(folder: Path, work: list[list[str]]) -> float:
    """The peak of a cluster that begins, runs one job and ends, as that of `parallelrun run` does, above the peak of
    the loop's own processes: those of earlier loops, which `multiprocessing` keeps, count as the loop's alone."""
    with _peak_mb(_descendants()) as ours, Jobs(SCRIPT, processes=WORKERS) as jobs:
        jobs.run(folder, mini_batch_size=EACH)
    with _peak_mb() as loops:
        run_loop(work)
    print(f"  memory: ParallelRun {ours[0]:.0f} MB, loop {loops[0]:.0f} MB")
    return ours[0] - loops[0]


def _can_run(python: Path) -> bool:
    command = [str(python), "-c", "import torch, PIL"]
    return python.exists() and not subprocess.run(command, capture_output=True, check=False).returncode


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    if find_spec("torch") is None or find_spec("PIL") is None:
        print("  torch or pillow is missing in this environment: nothing is measured")
        return {"left_out": "torch"}
    rounds, count = {"tiny": (1, 64), "quick": (3, 1_000), "full": (7, 10_000)}[size]
    folder = images(count)
    work = mini_batches_of(folder, count, EACH)
    with Jobs(SCRIPT, processes=WORKERS) as jobs:
        systems: dict[str, Callable[[], Figures]] = {
            "ParallelRun": lambda: run_job(jobs, folder, count),
            "loop": lambda: run_loop(work),
        }
        if size == "full" and rivals.available() and _can_run(rivals.ENVIRONMENT / "bin" / "python"):
            systems |= {
                name: lambda module=module: rivals.measure(module, "images", folder, count)  # type: ignore[misc]
                for name, module in _RIVALS.items()
            }
        comparison = Comparison(systems).run(rounds)
    over_mb = _memory_over_loop_mb(folder, work)
    print(comparison.table())
    last: dict[str, object] = {"images": count, "rounds": rounds}
    last |= comparison.ratio("ParallelRun", "loop", "wall_s").fields("wall_to_loop")
    last |= comparison.ratio("ParallelRun", "loop", "whole_s").fields("whole_to_loop")
    last |= comparison.ratio("ParallelRun", "loop", "cpu_s").fields("cpu_to_loop")
    for name in [name for name in _RIVALS if name in systems]:
        ratio = Spread.of(
            theirs / ours
            for theirs, ours in zip(
                comparison.values(name, "wall_s"), comparison.values("ParallelRun", "wall_s"), strict=True
            )
        )
        last |= ratio.fields(f"faster_than_{name.lower().replace(' ', '_')}")
    last["images_per_s"] = f"{count / comparison.spread('ParallelRun', 'wall_s').median:.0f}"
    last["memory_over_loop_mb"] = f"{over_mb:.0f}"
    return last
