"""Mini-batches of very different lengths: how long workers wait for each other at a job's end.

1,000 mini-batches sleep for lengths of a lognormal distribution with sigma 1, in eight workers of one node. Beside it
stands what list scheduling makes of the same lengths, all of which it knows, without any cost of its own: each worker
that gets free takes the next mini-batch in the list. `wall_to_list` has the list in the job's order,
`wall_to_longest_first` the longest ones first, which is the best order. Wall time is from the first run() to the last
commit.
"""

from __future__ import annotations

import heapq
import random
import tempfile
from collections.abc import Iterable
from math import exp
from pathlib import Path
from typing import Final

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Spread
from parallelrun_core.folder.decisions import read_decisions

_WORKERS: Final = 8
_SIGMA: Final = 1.0
_SCRIPT: Final = """
import json, os, time
LENGTHS = json.loads(os.environ["LENGTHS"])
def run(mini_batch, context):
    time.sleep(LENGTHS[context.minibatch_index])
    return [context.minibatch_index]
"""


def _lengths(count: int, median_s: float, seed: int) -> list[float]:
    """The seconds that each mini-batch sleeps."""
    drawn = random.Random(seed)
    return [median_s * exp(drawn.gauss(0, _SIGMA)) for _ in range(count)]


def list_schedule_s(lengths: Iterable[float], workers: int) -> float:
    """The seconds until all mini-batches are done of which the worker that is free first takes the next one."""
    free_at = [0.0] * workers
    for length in lengths:
        heapq.heapreplace(free_at, free_at[0] + length)
    return max(free_at)


def _job_s(jobs: Jobs, folder: Path, lengths: list[float]) -> float:
    """The seconds from the first run() of a job to its last commit.

    Raises:
        RuntimeError: a mini-batch is missing.
    """
    variables = {"LENGTHS": f"[{','.join(f'{length:.4f}' for length in lengths)}]"}
    done = jobs.run(
        folder, rank_mini_batch_count=len(lengths), environment_variables=variables, run_invocation_timeout=600
    )
    rows = {int(line) for line in Path(done.result.output).read_text().splitlines()}
    if rows != set(range(len(lengths))):
        raise RuntimeError(f"{len(rows):,} mini-batches of {len(lengths):,} are done")
    first = min(outcome.started for outcome in read_decisions(done.folder.path))
    last = max(log.stat().st_mtime for log in done.folder.path.glob("decisions.*"))
    return last - first


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    count, median_s, rounds = {"tiny": (40, 0.01, 1), "quick": (1_000, 0.05, 3), "full": (1_000, 0.5, 5)}[size]
    found: list[tuple[float, float, float]] = []
    with Jobs(_SCRIPT, processes=_WORKERS) as jobs, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "any").touch()
        for seed in range(rounds):
            lengths = _lengths(count, median_s, seed)
            job_s = _job_s(jobs, Path(folder), lengths)
            listed_s = list_schedule_s(lengths, _WORKERS)
            best_s = list_schedule_s(sorted(lengths, reverse=True), _WORKERS)
            print(
                f"  round {seed + 1}/{rounds}  job {job_s:.2f} s, list {listed_s:.2f} s, longest first {best_s:.2f} s"
            )
            found.append((job_s, listed_s, best_s))
    return {
        "mini_batches": count,
        "workers": _WORKERS,
        **Spread.of(job / listed for job, listed, _ in found).fields("wall_to_list", 3),
        **Spread.of(job / best for job, _, best in found).fields("wall_to_longest_first", 3),
    }
