"""How busy workers are while each answer of the store takes 200 ms, by a proxy: what staging ahead is for.

run() uses 50 ms of CPU; four objects of 4 KB in each mini-batch, 2 workers. `busy` is the time in run() over the time
of both workers, from the first run() to the end of the last.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.rivals.work import WORKERS
from benchmarks.store import server
from parallelrun_core.folder.decisions import read_decisions
from tests.store_proxy import StoreProxy

_EACH: Final = 4
_BYTES: Final = 4096
_DELAY_S: Final = 0.2
_SCRIPT: Final = """\
import time

def run(mini_batch):
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    return mini_batch
"""


def measure(jobs: Jobs, path: str, files: int) -> Figures:
    """One job over objects that are not on the node."""
    done = jobs.run(Path(path), inputs={"data": {"path": path}}, rows=files, mini_batch_size=_EACH)
    outcomes = list(read_decisions(done.folder.path))
    first = min(outcome.started for outcome in outcomes)
    last = max(outcome.started + outcome.elapsed_s for outcome in outcomes)
    return {
        "busy": sum(outcome.run_s for outcome in outcomes) / WORKERS / (last - first),
        "load_s": sum(outcome.load_s for outcome in outcomes),
    }


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    if not server.available():
        return {"busy": "not_measured"}
    rounds, files = {"tiny": (1, 40), "quick": (3, 1_200), "full": (5, 4_000)}[size]
    folder = server.same_files(files, _BYTES)
    with server.store() as store, StoreProxy(store.url, delay_s=_DELAY_S) as proxy:
        paths = iter([server.upload(folder, f"round-{number}") for number in range(rounds)])
        proxy.set("delay")
        with server.environment(store.environment_at(proxy.url)), Jobs(_SCRIPT, processes=WORKERS) as jobs:
            ours: dict[str, Callable[[], Figures]] = {"ParallelRun": lambda: measure(jobs, next(paths), files)}
            compared = Comparison(ours).run(rounds)
    return {**compared.spread("ParallelRun", "busy").fields("busy", 3)}


if __name__ == "__main__":
    print(main("quick"))
