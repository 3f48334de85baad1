"""One folder with very many files, 100 in each mini-batch, on a warm cluster: when the first run() begins, and when all
is listed and recorded.

Both are measured from the start of the job's scheduling. In the same round: one bare pass of `os.scandir`.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from parallelrun_core.folder.job_folder import JobFolder

_FILES_EACH = 100
_SCRIPT = "import time\n\ndef run(mini_batch):\n    return [time.time()] * len(mini_batch)\n"
_FINISHED = re.compile(r"Scheduling finished: .* in ([0-9.]+) s")


def measure(jobs: Jobs, folder: Path) -> Figures:
    """One job over the folder."""
    done = jobs.run(folder, mini_batch_size=_FILES_EACH)
    with open(done.result.output) as rows:
        first = min(map(float, rows))
    return {
        "first_run_s": first - (done.result.started or 0.0),
        "recorded_s": _recorded_s(done.folder),
        "job_s": done.wall_s,
    }


def _recorded_s(folder: JobFolder) -> float:
    text = "".join(path.read_text() for path in folder.logs.glob("*.txt"))
    found = _FINISHED.search(text)
    if found is None:
        raise RuntimeError(f"{folder.logs} doesn't say when scheduling was finished")
    return float(found.group(1))


def scan(folder: Path) -> Figures:
    """The time that the operating system takes to list the names."""
    began = time.perf_counter()
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.name  # noqa: B018 - the pass itself is measured
    return {"recorded_s": time.perf_counter() - began}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds, files = {"tiny": (1, 2_000), "quick": (3, 200_000), "full": (7, 1_000_000)}[size]
    folder = data.files(files)
    with Jobs(_SCRIPT) as jobs:
        found = Comparison({"os.scandir": lambda: scan(folder), "ParallelRun": lambda: measure(jobs, folder)}).run(
            rounds
        )
    print(found.table())
    return {
        "files": files,
        "rounds": rounds,
        **found.spread("ParallelRun", "first_run_s").fields("first_run_s", 3),
        **found.spread("ParallelRun", "recorded_s").fields("recorded_s", 3),
        **found.ratio("ParallelRun", "os.scandir", "recorded_s").fields("times_scandir"),
        "scandir_s": f"{found.spread('os.scandir', 'recorded_s').median:.3f}",
    }
