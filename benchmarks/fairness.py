"""Two jobs on one node: how soon a small one begins behind a long one, and what that costs the long one.

First, a job of 4 files is submitted behind one of 10,000 mini-batches of 2 s, of which only as many run as the
measurement needs: `second_job_start_s` is the time from its submission to its first run().

Then a job of mini-batches of 0.2 s runs with and without a second one, whose init() takes no time, or 3 s.
`first_job_cost` is the time that it takes longer than with its part of the slots, as a share of its time alone: what
workers of the second job have used, from their start to their end, is no cost. Its time is that of its workers, from
the start of the first to the end of the last, by what they note themselves: how soon a busy machine answers a request
or writes an output is no cost of sharing. `starved` counts the jobs of which no
run() had begun after ten mini-batches of the other.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from benchmarks import Size, data
from benchmarks.jobs import Jobs
from parallelrun.errors import JobCanceled

_SCRIPT = """
import json, os, time

def note(what):
    with open(os.path.join(os.environ["NOTES"], str(os.getpid())), "a") as file:
        file.write(json.dumps([what, time.time()]) + "\\n")

def init():
    began = os.stat(f"/proc/{os.getpid()}").st_ctime
    with open(os.path.join(os.environ["NOTES"], str(os.getpid())), "a") as file:
        file.write(json.dumps(["spawned", began]) + "\\n")
    time.sleep(float(os.environ["INIT_S"]))

def run(mini_batch):
    note("run")
    time.sleep(float(os.environ["RUN_S"]))
    return mini_batch

def shutdown():
    note("ended")
"""
_SLOTS = 2
_LONG_S = 2.0
_SHORT_S = 0.2
_PATIENCE = 10
"""Mini-batches of the other job after which one counts as starved."""


class _Notes:
    """What the workers of a job have noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def times(self, what: str) -> list[float]:
        """When this happened, in order."""
        lines = [line for file in self.folder.iterdir() for line in file.read_text().splitlines()]
        return sorted(at for noted, at in map(json.loads, lines) if noted == what)

    def elapsed_s(self) -> float:
        """Seconds from the start of its first worker to the end of its last."""
        return self.times("ended")[-1] - self.times("spawned")[0]

    def used_s(self) -> float:
        """Slot-seconds of its workers, each from its start to its end."""
        return sum(self.times("ended")) - sum(self.times("spawned"))


def _submit(jobs: Jobs, folder: Path, run_s: float, init_s: float = 0.0) -> tuple[str, _Notes]:
    notes = _Notes(jobs.home / f"notes-{time.monotonic_ns()}")
    variables = {"NOTES": str(notes.folder), "RUN_S": str(run_s), "INIT_S": str(init_s)}
    return jobs.start(folder, mini_batch_size=1, environment_variables=variables), notes


def _begins(notes: _Notes, within_s: float, count: int = 1) -> bool:
    deadline = time.monotonic() + within_s
    while len(notes.times("run")) < count:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _start_behind(jobs: Jobs, long: Path, small: Path) -> tuple[float, int]:
    """Seconds to the first run() of a small job behind a long one, and how many starved."""
    first, its_notes = _submit(jobs, long, _LONG_S)
    _begins(its_notes, 60, count=2 * _SLOTS)
    submitted = time.time()
    second, notes = _submit(jobs, small, _LONG_S)
    has_begun = _begins(notes, _PATIENCE * _LONG_S)
    if has_begun:
        jobs.client.jobs.wait(second)
    for job in (first, *(() if has_begun else (second,))):
        jobs.client.jobs.cancel(job)
        with suppress(JobCanceled):
            jobs.client.jobs.wait(job)
    return notes.times("run")[0] - submitted if has_begun else _PATIENCE * _LONG_S, int(not has_begun)


def _pair(jobs: Jobs, folder: Path, second: Path, init_s: float) -> tuple[float, int]:
    """The cost of a second job as a share of the first one's time alone, and how many starved."""
    taken_s = []
    for with_second in (False, True):
        jobs.settle()
        job, its_notes = _submit(jobs, folder, _SHORT_S)
        starved, used_s = 0, 0.0
        if with_second:
            _begins(its_notes, 60, count=2 * _SLOTS)
            other, notes = _submit(jobs, second, _SHORT_S, init_s)
            starved = int(not _begins(notes, init_s + _PATIENCE * _SHORT_S + 10))
            jobs.client.jobs.wait(other)
            used_s = notes.used_s()
        jobs.client.jobs.wait(job)
        jobs.settle()
        taken_s.append(its_notes.elapsed_s() - used_s / _SLOTS)
    alone_s, beside_s = taken_s
    print(f"init() of {init_s:g} s: alone {alone_s:.1f} s, beside a second job {beside_s:.1f} s")
    return beside_s / alone_s - 1, starved


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    first, second = {"tiny": (20, 2), "quick": (200, 20), "full": (1000, 100)}[size]
    with Jobs(_SCRIPT, processes=_SLOTS) as jobs:
        start_s, starved = _start_behind(jobs, data.files(10_000 if size != "tiny" else 100), data.files(4))
        costs = []
        for init_s in (0.0, 3.0) if size != "tiny" else (0.0,):
            cost, also_starved = _pair(jobs, data.files(first), data.files(second), init_s)
            costs.append(cost)
            starved += also_starved
    return {"second_job_start_s": round(start_s, 2), "first_job_cost": round(max(costs), 3), "starved": starved}
