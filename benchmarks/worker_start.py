"""From the moment that an agent begins to start a job's first worker to the call of run() with its first mini-batch.

The script imports pandas and pyarrow. In turn: a worker that is forked from a template on a warm node, which has run
the same script before; and one that is a new Python each time, as on a node with
`PARALLELRUN_FORK_WORKERS=false`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures

_ROUNDS = {"tiny": 1, "quick": 7, "full": 21}
_SETTING = "PARALLELRUN_FORK_WORKERS"
_WITHIN_S = 60.0
_SCRIPT = """
import os
import time

import pandas as pd
import pyarrow as pa


def run(mini_batch):
    # The agent writes this file just before it forks the worker, or starts it.
    return [time.time() - os.stat(".worker.json").st_mtime]
"""


@contextmanager
def _cluster(is_forking: bool) -> Iterator[Jobs]:
    os.environ[_SETTING] = str(is_forking).lower()
    try:
        with Jobs(_SCRIPT, processes=1) as jobs:
            yield jobs
    finally:
        os.environ.pop(_SETTING, None)


def _measure(jobs: Jobs, folder: Path) -> Figures:
    run = jobs.run(folder, mini_batch_size=1)
    return {"start_s": float(Path(run.result.output).read_text()), "job_s": run.wall_s, "cpu_s": run.cpu_s}


def _wait_for_template(jobs: Jobs) -> None:
    """Wait until the node has a template.

    Raises:
        TimeoutError: it has none.
    """
    deadline = time.monotonic() + _WITHIN_S
    log = next(jobs.cluster.layout.logs.glob("node*"))
    while "template_ready" not in log.read_text():
        if time.monotonic() > deadline:
            raise TimeoutError(f"there is no template: {log.read_text()[-2000:]}")
        time.sleep(0.1)


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    folder = data.files(1)
    with ExitStack() as stack:
        clusters = {name: stack.enter_context(_cluster(name == "forked")) for name in ("forked", "alone")}
        for jobs in clusters.values():
            _measure(jobs, folder)
        _wait_for_template(clusters["forked"])
        found = Comparison(
            {
                "forked": lambda: _measure(clusters["forked"], folder),
                "alone": lambda: _measure(clusters["alone"], folder),
            }
        ).run(_ROUNDS[size])
    print(found.table())
    return {
        "rounds": _ROUNDS[size],
        **found.spread("forked", "start_s").fields("forked_s", 3),
        **found.spread("alone", "start_s").fields("alone_s", 3),
        **found.ratio("forked", "alone", "start_s").fields("forked_to_alone", 3),
        **found.spread("forked", "job_s").fields("forked_job_s", 2),
        **found.spread("alone", "job_s").fields("alone_job_s", 2),
        **found.ratio("forked", "alone", "cpu_s").fields("cpu_forked_to_alone", 2),
    }
