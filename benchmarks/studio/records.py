"""Jobs as their leaders and agents leave them, by the product's own writers: tries of 64 workers, and decisions."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from benchmarks.stage import Stage
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.masking import Mask
from parallelrun_core.wire.outcome import Failure, Outcome, Phase, Use
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.reports.advice import lines_of_advice
from parallelrun_master.reports.summaries import Summaries
from parallelrun_master.reports.tries import TryReport, keep_tries

_WORKERS: Final = 64
_IN_RECORD: Final = 200
"""Outcomes that an agent reports together."""
_BEGIN: Final = 1_763_700_000.0
_DECIDED_PER_S: Final = 200


class Writer:
    """Writes what the tries of one job leave in its folder."""

    def __init__(self, folder: JobFolder) -> None:
        self._random = random.Random(1)
        self._ends = [_BEGIN + 2.0] * _WORKERS
        self._log = DecisionWriter(folder.path, 1)
        self._summaries = Summaries(folder.logs)
        self._report = TryReport(folder.logs, Mask({}), self._summaries)
        for worker in range(_WORKERS):
            self._report.add_phase(Phase(f"node{worker // 8}", f"process{worker % 8:03}", "INIT", _BEGIN, 2.0))

    def write(self, first: int, end: int) -> None:
        """The tries of mini-batches, in records as they come from agents, with one failure in a thousand."""
        for at in range(first, end, _IN_RECORD):
            outcomes = [self._outcome(number) for number in range(at, min(at + _IN_RECORD, end))]
            self._log.add(outcomes)
            self._report.add(outcomes, {})
            self._report.flush()
        self._log.sync()

    def close(self) -> None:
        """Write the rest."""
        self._log.close()
        self._report.close()

    def _outcome(self, number: int) -> Outcome:
        worker, run_s = number % _WORKERS, self._random.lognormvariate(-1, 1)
        begin = self._ends[worker]
        self._ends[worker] = begin + run_s + 0.02
        failed = self._random.random() < 0.001
        return Outcome(
            mini_batch=number, generation=0, status="failed" if failed else "done", token=f"{number:x}", tries=1,
            node=f"node{worker // 8}", process=f"process{worker % 8:03}", part="part", offset=number, length=100, crc=1,
            items=10, rows=0 if failed else 10, started=begin, elapsed_s=run_s + 0.02, run_s=run_s, process_s=run_s,
            failure=Failure("RUN_EXCEPTION", f"ValueError: {number}", _TRACEBACK) if failed else None,
            load_s=0.015, use=Use(peak_bytes=50_000_000 + number),
        )  # fmt: skip


_TRACEBACK = 'Traceback (most recent call last):\n  File "score.py", line 12, in run\nValueError: bad'


def finished(stage: Stage, count: int) -> str:
    """A job with so many mini-batches, which has ended; returns its id."""
    folder, _ = stage.job(inputs="/data")
    writer = Writer(folder)
    writer.write(0, count)
    writer.close()
    progress = Progress(scheduled=count, listing_done=True, published=count, done=count)
    result = JobResult(
        job_id=folder.job_id, state=JobState.COMPLETED, started=_BEGIN, ended=time.time(), progress=progress
    )
    folder.conclude(result)
    keep_tries(folder, result)
    lines_of_advice(folder, result)
    return folder.job_id


class Running:
    """A job of which half is done, and more with each second.

    Attributes:
        decided: how many mini-batches are.
    """

    def __init__(self, stage: Stage, count: int) -> None:
        self._folder, _ = stage.job(inputs="/data")
        self._queue, self._writer = stage.lead(self._folder), Writer(self._folder)
        self._count, self.decided = count, count // 2
        self._writer.write(0, self.decided)

    @property
    def job_id(self) -> str:
        return self._folder.job_id

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What a leader does once a second: record what was decided, and say how far the job is."""
        enough = threading.Event()
        thread = threading.Thread(target=self._decide, args=(enough,))
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()

    def _decide(self, enough: threading.Event) -> None:
        while not enough.wait(1.0) and self.decided + _DECIDED_PER_S <= self._count:
            self._writer.write(self.decided, self.decided + _DECIDED_PER_S)
            self.decided += _DECIDED_PER_S
            done = Progress(scheduled=self._count, listing_done=True, done=self.decided)
            progress = msgspec.json.encode(done)
            self._queue.show({"progress": progress}, event=("progress", progress))

    def close(self) -> None:
        """Write the rest."""
        self._writer.close()
