"""Very many keys in a store that costs next to nothing: when the first run() begins, and what a key costs the master.

100 objects in each mini-batch, on a warm cluster. The store is `keys_server.py`, so that its own speed is no limit that
matters; it makes a page in about a millisecond. The job is canceled once all keys are in the manifest. In the same
round: the same library lists the same keys, and does nothing with them.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Comparison, Figures
from benchmarks.memory import Peaks
from benchmarks.store import server
from parallelrun.errors import Conflict, JobCanceled
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from tests.object_servers.s3 import S3Server

_EACH: Final = 100
_FEW: Final = 2_000
_SCRIPT: Final = "def run(mini_batch):\n    return [1] * len(mini_batch)\n"
_FINISHED: Final = re.compile(r"Scheduling finished: .* in ([0-9.]+) s")


class Keys(S3Server):
    """The store."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.store.keys_server", str(self.port)]

    def make_bucket(self) -> None:
        socket.create_connection(("127.0.0.1", self.port), timeout=5).close()


@contextmanager
def _keys() -> Iterator[None]:
    with (
        server.environment({"PYTHONPATH": os.getcwd()}),
        Keys() as keys,
        server.environment({**keys.environment, **server.empty_cache(keys)}),
    ):
        yield


def measure(jobs: Jobs, keys: int) -> Figures:
    """One job, until all is in its manifest."""
    jobs.settle()
    path = f"s3://keys-{keys}/in"
    with Peaks(jobs.cluster.pids()) as peaks:
        before = jobs.cpu_by()
        job = jobs.start(Path(path), inputs={"data": {"path": path}}, mini_batch_size=_EACH)
        folder = JobFolder(jobs.cluster.layout.root, job)
        seconds = _recorded_s(folder)
        used = jobs.cpu_by()["master"] - before["master"]
        while not (first := next(read_decisions(folder.path), None)):
            time.sleep(0.05)
        started = jobs.client.jobs.get(job).started
        with suppress(JobCanceled, Conflict):  # the few are done already
            jobs.client.jobs.cancel(job)
            jobs.client.jobs.wait(job)
    return {
        "first_run_s": first.started - datetime.fromisoformat(str(started)).timestamp(),
        "recorded_s": seconds,
        "keys_per_cpu_s": keys / used,
        "master_mb": peaks.mb["master"],
    }


def _recorded_s(folder: JobFolder) -> float:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        text = "".join(path.read_text() for path in folder.logs.glob("*.txt"))
        if finished := _FINISHED.search(text):
            return float(finished.group(1))
        time.sleep(0.02)
    raise RuntimeError(f"{folder.logs} doesn't say when scheduling was finished")


def bare(keys: int) -> Figures:
    """The library alone, in a process of its own."""
    script = f"""
import time, obstore
from obstore.store import S3Store
cpu, began = time.process_time(), time.perf_counter()
pages = obstore.list(S3Store("keys-{keys}", client_options={{"allow_http": True}}), "in", chunk_size=1000)
assert sum(len(page) for page in pages) == {keys}
print(time.perf_counter() - began, time.process_time() - cpu)
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=600)
    wall, cpu = map(float, done.stdout.split())
    return {"recorded_s": wall, "keys_per_cpu_s": keys / cpu}


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds, keys = {"tiny": (1, 2_000), "quick": (3, 200_000), "full": (5, 1_000_000)}[size]
    with _keys(), Jobs(_SCRIPT) as jobs:
        few = measure(jobs, _FEW)["master_mb"]
        compared = Comparison({"obstore": lambda: bare(keys), "ParallelRun": lambda: measure(jobs, keys)}).run(rounds)
    print(compared.table())
    return {
        "keys": keys,
        **compared.spread("ParallelRun", "first_run_s").fields("first_run_s", 3),
        **compared.spread("ParallelRun", "keys_per_cpu_s").fields("keys_per_cpu_s", 0),
        "bare_keys_per_cpu_s": f"{compared.spread('obstore', 'keys_per_cpu_s').median:.0f}",
        "listed_s": f"{compared.spread('ParallelRun', 'recorded_s').median:.2f}",
        "master_mb": f"{compared.spread('ParallelRun', 'master_mb').median:.0f}",
        "master_mb_few_keys": f"{few:.0f}",
    }


if __name__ == "__main__":
    print(main("quick"))
