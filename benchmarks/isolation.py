"""One bad item in a hundred: what it costs to run the items of their mini-batches apart, and whether any row is lost.

The same files are run with and without bad ones, in turn. Each item takes 5 ms of CPU time, in mini-batches of ten, and
a mini-batch has one try before its items are run apart. A bad item is anywhere in its mini-batch. `cost` is how much
more CPU time a job with bad items takes than one without, as a share of the latter; so it doesn't depend on what else
the machine does.
"""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures, Spread

_SCRIPT = """
import os, time

def run(mini_batch):
    rows = []
    for path in mini_batch:
        until = time.process_time() + 0.005
        while time.process_time() < until:
            pass
        number = int("".join(filter(str.isdigit, os.path.basename(path))))
        if os.environ["BAD"] and number % 100 == (37 * (number // 100) + 13) % 100:
            raise ValueError(f"item {number} is bad")
        rows.append(path)
    return rows
"""
_EVERY = 100


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    files, rounds = {"tiny": (200, 1), "quick": (2000, 3), "full": (5000, 3)}[size]
    folder, bad = data.files(files), files // _EVERY
    lost = listed = 0
    with Jobs(_SCRIPT) as jobs:

        def job(*, with_bad: bool) -> Figures:
            nonlocal lost, listed
            rows = files - bad if with_bad else files
            variables = {"BAD": "yes" if with_bad else ""}
            done = jobs.run(
                folder, mini_batch_size=10, run_max_try=1, on_failure="isolate", environment_variables=variables
            )
            lost += rows - len(Path(done.result.output or "").read_text().splitlines())
            if with_bad:
                listed = _listed(done.folder.logs / "failed_items.csv")
            return {"wall_s": done.wall_s, "cpu_s": done.cpu_s}

        job(with_bad=False)  # the first one starts the workers
        comparison = Comparison({"clean": lambda: job(with_bad=False), "bad": lambda: job(with_bad=True)}).run(rounds)
    print(comparison.table())
    pairs = zip(comparison.values("bad", "cpu_s"), comparison.values("clean", "cpu_s"), strict=True)
    ratios = Spread.of(with_bad / without - 1 for with_bad, without in pairs)
    return {**ratios.fields("cost"), "rows_lost": lost, "listed": listed, "bad": bad, "files": files, "rounds": rounds}


def _listed(path: Path) -> int:
    with path.open(newline="") as file:
        return sum(1 for _ in csv.DictReader(file))
