"""Cases that are run for real: a cluster of one node whose workers mostly sleep, so that two CPUs are enough."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from benchmarks.adviser.cases import LEAST_S, Case, Went
from parallelrun.embedded.cluster import Cluster
from parallelrun_core.adviser.advice import AdviceFinding

_SLOTS = 4
_PER_ITEM = "import time\n\ndef run(mini_batch):\n    time.sleep({seconds} * len(mini_batch))\n    return mini_batch\n"


@dataclass(frozen=True)
class Plan:
    """A job: its script, how many files it has, and its settings."""

    script: str
    files: int
    settings: dict[str, Any] = field(default_factory=dict)

    def changed(self, finding: AdviceFinding) -> Plan:
        """With the fields that the finding names."""
        return Plan(self.script, self.files, {**self.settings, **finding.change.set})


class Machine:
    """A cluster that runs plans, in a `with` statement."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="parallelrun-adviser-"))
        self._cluster = Cluster(self._home / "cluster", nodes=1, processes=_SLOTS)
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        self._cluster.start()
        # A node of one CPU, so that four workers that sleep are what is advised, and no more.
        os.sched_setaffinity(self._cluster.pids()["node1"], {min(os.sched_getaffinity(0))})
        self._client = self._cluster.client()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._cluster.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def run(self, plan: Plan) -> Went:
        """Run a job to its end, and ask what is said about it."""
        while any(node.jobs for node in self._client.nodes.list()):
            time.sleep(0.05)
        home = self._home / f"plan{next(self._numbers)}"
        (home / "code").mkdir(parents=True)
        (home / "data").mkdir()
        (home / "code" / "entry.py").write_text(plan.script.replace("HOME", str(home)))
        for number in range(plan.files):
            (home / "data" / f"{number:06d}").touch()
        document = {
            "code": str(home / "code"), "entry_script": "entry.py", "inputs": {"data": {"path": str(home / "data")}},
            "mini_batch_size": 1, "max_concurrency_per_instance": 4, **plan.settings,
        }  # fmt: skip
        job = self._client.jobs.create(document, upload_code=False)
        self._client.jobs.wait(job.id, raise_on_failure=False)
        advice = self._client.jobs.advice(job.id, min_saving_s=LEAST_S)
        return Went(advice.basis.seconds if advice.basis else 0.0, advice)

    def error_of_processes(self) -> float:
        """The worst error of what is computed for other numbers of processes, as a share of the time that it takes."""
        plan = Plan(_PER_ITEM.format(seconds=0.5), 90)
        counts = (1, 2, 3, 4)
        measured = {
            count: self.run(Plan(plan.script, plan.files, {"max_concurrency_per_instance": count})) for count in counts
        }
        asked = f"processes={','.join(map(str, counts))}"
        errors = [
            abs(point.seconds - measured[point.value].seconds) / measured[point.value].seconds
            for each in measured.values()
            for point in self._client.jobs.what_if(each.advice.job_id, asked).points
        ]
        return max(errors)

    def cases(self) -> list[Case]:
        """All that fit on one small machine."""
        return [
            self._by_settings("tiny mini-batches", "mini_batch_too_small", Plan(_NOTHING, 150_000)),
            self._by_settings(
                "too few mini-batches", "too_few_mini_batches",
                Plan(_PER_ITEM.format(seconds=0.5), 40, {"mini_batch_size": 20}),
            ),
            self._by_settings(
                "large mini-batches", "mini_batch_too_large",
                Plan(_PER_ITEM.format(seconds=0.3), 50, {"mini_batch_size": 10}),
            ),
            self._by_settings(
                "one process", "too_few_processes",
                Plan(_PER_ITEM.format(seconds=0.15), 100, {"max_concurrency_per_instance": 1}),
            ),
            self._by_settings(
                "tight timeout", "timeout_too_tight",
                Plan(_TIMEOUT, 60, {"run_invocation_timeout": 1, "run_max_try": 3}),
            ),
            self._by_settings("errors that come again", "retries", Plan(_HOPELESS, 60, {"run_max_try": 4})),
            self._by_script("giant item", "giant_item", _GIANT, _DIVIDED, files=40),
            self._by_script("slow init", "slow_init", _INIT.format(init_s=5), _INIT.format(init_s=0), files=100),
            self._by_script("a lock", "contention", _LOCK, _PER_ITEM.format(seconds=0.1), files=100),
            self._by_script(
                "errors at first", "retries", _AT_FIRST, _PER_ITEM.format(seconds=0.2), files=80
            ),
            self._by_script("slower and slower", "slower_over_time", _LEAK, _PER_ITEM.format(seconds=0.05), files=160),
            self._by_script("workers that die", "workers_die", _DYING, _INIT.format(init_s=0.5), files=60),
        ]  # fmt: skip

    def _by_settings(self, name: str, finding: str, plan: Plan) -> Case:
        return Case(name, finding, partial(self.run, plan), lambda said: self.run(plan.changed(said)))

    def _by_script(self, name: str, finding: str, slow: str, mended: str, *, files: int) -> Case:
        def again(_: AdviceFinding) -> Went:
            return self.run(Plan(mended, files if mended is not _DIVIDED else files + 29))

        return Case(name, finding, partial(self.run, Plan(slow, files)), again)


_NOTHING = "def run(mini_batch):\n    return mini_batch\n"
_GIANT = """\
import time

def run(mini_batch):
    time.sleep(6.0 if "000030" in str(mini_batch[0]) else 0.2)
    return mini_batch
"""
_DIVIDED = _PER_ITEM.format(seconds=0.2)
_INIT = """\
import time

def init():
    time.sleep({init_s})

def run(mini_batch):
    time.sleep(0.1)
    return mini_batch
"""
_LOCK = """\
import fcntl, time

def run(mini_batch):
    with open("HOME/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        time.sleep(0.1)
    return mini_batch
"""
_TIMEOUT = """\
import time

def run(mini_batch):
    time.sleep(1.4 if int(str(mini_batch[0])[-2:]) % 6 == 0 else 0.2)
    return mini_batch
"""
_HOPELESS = """\
import time

def run(mini_batch):
    time.sleep(0.2)
    if int(str(mini_batch[0])[-2:]) % 2:
        raise ValueError("bad data")
    return mini_batch
"""
_AT_FIRST = """\
import os, time

def run(mini_batch):
    time.sleep(0.2)
    mark = "HOME/" + os.path.basename(str(mini_batch[0]))
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise ConnectionError("try again")
    return mini_batch
"""
_LEAK = """\
import time

calls = []

def run(mini_batch):
    calls.append(mini_batch)
    time.sleep(0.05 + 0.006 * len(calls))
    return mini_batch
"""
_DYING = """\
import os, time

calls = []

def init():
    time.sleep(0.5)

def run(mini_batch):
    calls.append(mini_batch)
    time.sleep(0.1)
    if len(calls) == 6:
        os._exit(3)
    return mini_batch
"""
