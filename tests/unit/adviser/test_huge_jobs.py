"""Advice on huge jobs reads and holds no more, whatever the number of tries; a sample stands for all of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from parallelrun_core.adviser.advice import Advice
from parallelrun_core.adviser.evidence import RETRY, Evidence
from parallelrun_core.adviser.reading.stretches import MOST_BYTES, STRETCHES, parts_of
from parallelrun_core.adviser.reading.tries import ReadTries, read_tries
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.folder.decisions import NAME as DECISIONS
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.layout import RETRIES
from parallelrun_core.wire.outcome import Outcome, encode_all
from tests.unit.core.factories import outcome

BEGUN = 1_800_000_000.0
FIRST_TRY = BEGUN + 2.0
WORKERS = 8
"""Of four processes on two nodes; all of them are busy all the time."""
TRY_S = 0.01
ROUND_S = TRY_S * 1.5
"""From the begin of a worker's try to that of its next one."""
ITEMS = 100_000
SPEC = {"entry_script": "main.py", "inputs": {"data": {"path": "/inputs/data"}}, "mini_batch_size": str(ITEMS)}
SUCCESS = outcome(status="done", items=ITEMS, elapsed_s=TRY_S, run_s=TRY_S * 0.9)
FAILURE = msgspec.structs.replace(SUCCESS, status="retry")
WRITTEN_AT_ONCE = 100
TRIES = 1_000_000
SMALL = 60_000
"""Tries of a job whose log is read as a whole, too."""
SMALL_BYTES = 1 << 20
"""The most that is read of such a job's log, a tenth of it."""
MEMORY_OF_READ = 3
"""Bytes of memory for each byte that is read of a log, at most: its tries as columns, sorted, and simulated.
All of the largest log here takes twice this limit."""
HUNG_S = 60
"""Advice on a huge job takes some seconds, on a busy machine as well."""
SMALL_JOB_S = 200
"""Longer than the tries of the small job take (114 s), so that it has an end during which none runs."""


def success(mini_batch: int) -> Outcome:
    return try_of(mini_batch, SUCCESS, FIRST_TRY)


def failure(mini_batch: int) -> Outcome:
    """A try that has failed, a second before the one that succeeds."""
    return try_of(mini_batch, FAILURE, FIRST_TRY - 1.0)


def try_of(mini_batch: int, end: Outcome, first: float) -> Outcome:
    return msgspec.structs.replace(
        end,
        mini_batch=mini_batch,
        node=f"node{mini_batch % 2}",
        process=f"process{mini_batch % WORKERS // 2}",
        started=first + mini_batch // WORKERS * ROUND_S,
    )


def write_log(folder: Path, name: str, tries: Iterator[Outcome]) -> None:
    log = open_term(folder, name, 1)
    while block := list(islice(tries, WRITTEN_AT_ONCE)):
        log.append(encode_all(block))
    log.sync()
    log.close()


def most_tries(folder: Path, tries: int, most_bytes: int) -> int:
    """Of so many decisions, the most that are in so many bytes; a stretch ends with the block that begins in it."""
    return tries * most_bytes // parts_of(folder, DECISIONS).total_bytes + STRETCHES * WRITTEN_AT_ONCE


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """The folder of a job that has decided a million mini-batches."""
    folder = JobFolder(tmp_path_factory.mktemp("root"), "job_01kav3x8n2h7q5m9c4t6")
    folder.create(JobRecord(job_id=folder.job_id, submitted=BEGUN, code="", spec=SPEC))
    write_log(folder.path, DECISIONS, map(success, range(TRIES)))
    return folder


def test_advice_on_a_million_tries_reads_a_sample_and_takes_little_memory(million: JobFolder) -> None:
    """What is read of a log is bounded, and the memory for it, so that it is less than the log has bytes."""
    command = [sys.executable, "-m", "tests.unit.adviser.advise_huge_job", str(million.root), million.job_id]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=HUNG_S).stdout
    advice, grown_kb = msgspec.json.decode(printed, type=tuple[Advice, int])

    assert advice.basis is not None
    assert advice.basis.mini_batches == pytest.approx(TRIES, rel=0.01)
    assert advice.basis.looked_at <= most_tries(million.path, TRIES, MOST_BYTES)
    assert advice.basis.seconds == pytest.approx(TRIES / WORKERS * ROUND_S, rel=0.01)
    assert f"a sample of {advice.basis.looked_at:,} tries" in advice.summary
    assert grown_kb << 10 < MEMORY_OF_READ * MOST_BYTES < parts_of(million.path, DECISIONS).total_bytes


def test_what_is_read_of_a_log_does_not_grow_with_it(million: JobFolder, tmp_path: Path) -> None:
    write_log(tmp_path, DECISIONS, map(success, range(SMALL)))
    small, large = (read_tries(folder, BEGUN, most_bytes=SMALL_BYTES).tries for folder in (tmp_path, million.path))
    assert len(large) == pytest.approx(len(small), rel=0.2)


def test_a_sample_stands_for_all_tries(tmp_path: Path) -> None:
    write_log(tmp_path, DECISIONS, map(success, range(SMALL)))
    write_log(tmp_path, RETRIES, map(failure, range(0, SMALL, 5)))
    every, sample = read_tries(tmp_path, BEGUN), read_tries(tmp_path, BEGUN, most_bytes=SMALL_BYTES)

    assert (every.sample.is_all, every.sample.each, len(every.tries)) == (True, 1.0, SMALL * 6 // 5)
    assert len(sample.tries) <= most_tries(tmp_path, SMALL, SMALL_BYTES) * 6 // 5
    is_retry = sample.tries.status == RETRY
    assert set(sample.tries.mini_batch[is_retry]) <= set(sample.tries.mini_batch[~is_retry])

    schedule, estimate, each = schedule_of(every), schedule_of(sample), sample.sample.each
    assert estimate.count == pytest.approx(schedule.count, rel=0.02)
    assert estimate.work.sum() * each == pytest.approx(schedule.work.sum(), rel=0.02)
    assert estimate.lost.sum() * each == pytest.approx(schedule.lost.sum(), rel=0.25)
    assert estimate.base_s == pytest.approx(schedule.base_s, rel=0.2)
    assert estimate.after_s == pytest.approx(schedule.after_s, abs=3)  # the end of the job is in it


def schedule_of(read: ReadTries) -> TrySchedule:
    return TrySchedule(
        Evidence(tries=read.tries, sample=read.sample, nodes=read.nodes, processes=read.processes, seconds=SMALL_JOB_S)
    )
