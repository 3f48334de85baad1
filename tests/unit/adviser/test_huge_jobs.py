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
FIRST_FAILURE = BEGUN + 2.0
FIRST_SUCCESS = BEGUN + 30.0
"""When all failures of the small job are over, which take 22.5 s."""
WORKERS = 8
"""Of four processes on each of two nodes."""
TRY_S = 0.01
ROUND_S = TRY_S * 1.5
"""From the start of a worker's try to that of its next one."""
ITEMS = 100_000
SPEC = {"entry_script": "main.py", "inputs": {"data": {"path": "/inputs/data"}}, "mini_batch_size": str(ITEMS)}
SUCCESS = outcome(status="done", items=ITEMS, elapsed_s=TRY_S, run_s=TRY_S * 0.9)
FAILURE = msgspec.structs.replace(SUCCESS, status="retry")
WRITTEN_AT_ONCE = 100
TRIES = 1_000_000
SMALL_TRIES = 60_000
"""Of a job whose log is read as a whole, too."""
FAILS_EVERY = 5
"""Mini-batches of it: each of these has failed once."""
SMALL_BYTES = 1 << 20
"""The most that is read of such a job's log, a tenth of it."""
MEMORY_OF_READ = 3
"""Bytes of memory for each byte that is read of a log, at most: its tries as columns, sorted, and simulated."""
ADVISE = ("-m", "tests.unit.adviser.advise_huge_job")
HUNG_S = 600
"""Advice on a huge job takes some seconds."""
SMALL_JOB_S = 200
"""Longer than the tries of the small job take (143 s), so that it has an end during which none runs."""


def success(mini_batch: int) -> Outcome:
    return in_turn(SUCCESS, mini_batch, FIRST_SUCCESS, mini_batch)


def failure(turn: int) -> Outcome:
    return in_turn(FAILURE, turn * FAILS_EVERY, FIRST_FAILURE, turn)


def in_turn(template: Outcome, mini_batch: int, first_started_s: float, turn: int) -> Outcome:
    """A try of the worker whose turn it is, when all have had so many turns before."""
    return msgspec.structs.replace(
        template,
        mini_batch=mini_batch,
        node=f"node{turn % 2}",
        process=f"process{turn % WORKERS // 2}",
        started=first_started_s + turn // WORKERS * ROUND_S,
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


def advised(job: JobFolder, *command: str) -> tuple[Advice, int]:
    """Return advice on a job by a process of its own, and how many bytes that has grown by."""
    arguments = [sys.executable, *(command or ADVISE), str(job.root), job.job_id]
    printed = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, timeout=HUNG_S).stdout
    advice, grown_kb = msgspec.json.decode(printed, type=tuple[Advice, int])
    return advice, grown_kb << 10


def job_of_a_million(root: Path) -> JobFolder:
    """Make the folder of a job that has decided a million mini-batches."""
    folder = JobFolder(root, "job_01kav3x8n2h7q5m9c4t6")
    folder.create(JobRecord(job_id=folder.job_id, submitted=BEGUN, code="", spec=SPEC))
    write_log(folder.path, DECISIONS, map(success, range(TRIES)))
    assert parts_of(folder.path, DECISIONS).total_bytes > MEMORY_OF_READ * MOST_BYTES
    return folder


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    return job_of_a_million(tmp_path_factory.mktemp("root"))


def test_advice_on_a_million_tries_reads_a_sample_and_takes_little_memory(million: JobFolder) -> None:
    """What is read of a log is bounded, and the memory for it, so that it is less than the log has bytes."""
    advice, grown_bytes = advised(million)

    assert advice.basis is not None
    assert advice.basis.mini_batches == pytest.approx(TRIES, rel=0.01)
    assert advice.basis.looked_at <= most_tries(million.path, TRIES, MOST_BYTES)
    assert advice.basis.seconds == pytest.approx(FIRST_SUCCESS - BEGUN + TRIES / WORKERS * ROUND_S, rel=0.01)
    assert f"a sample of {advice.basis.looked_at:,} tries" in advice.summary
    assert grown_bytes < MEMORY_OF_READ * MOST_BYTES


def test_advice_looks_at_no_more_tries_of_a_longer_log(million: JobFolder, tmp_path: Path) -> None:
    write_log(tmp_path, DECISIONS, map(success, range(SMALL_TRIES)))
    small, large = (read_tries(folder, BEGUN, most_bytes=SMALL_BYTES).tries for folder in (tmp_path, million.path))
    assert len(small) > 0
    assert len(large) == pytest.approx(len(small), rel=0.2)


def test_advice_takes_a_sample_for_all_tries(tmp_path: Path) -> None:
    failures = SMALL_TRIES // FAILS_EVERY
    write_log(tmp_path, DECISIONS, map(success, range(SMALL_TRIES)))
    write_log(tmp_path, RETRIES, map(failure, range(failures)))
    every, sample = read_tries(tmp_path, BEGUN), read_tries(tmp_path, BEGUN, most_bytes=SMALL_BYTES)

    assert (every.sample.is_all, every.sample.each, len(every.tries)) == (True, 1.0, SMALL_TRIES + failures)
    assert len(sample.tries) <= most_tries(tmp_path, SMALL_TRIES, SMALL_BYTES) * (FAILS_EVERY + 1) // FAILS_EVERY
    is_retry = sample.tries.status == RETRY
    assert is_retry.any()
    assert set(sample.tries.mini_batch[is_retry]) <= set(sample.tries.mini_batch[~is_retry])

    tries_per_sampled = sample.sample.each
    schedule, estimate = schedule_of(every), schedule_of(sample)
    assert estimate.count == pytest.approx(schedule.count, rel=0.02)
    assert estimate.work.sum() * tries_per_sampled == pytest.approx(schedule.work.sum(), rel=0.02)
    assert estimate.lost.sum() * tries_per_sampled == pytest.approx(schedule.lost.sum(), rel=0.05)
    assert estimate.base_s == pytest.approx(schedule.base_s, rel=0.05)
    assert estimate.after_s == pytest.approx(schedule.after_s, abs=3)  # the end of the job is in it


def schedule_of(read: ReadTries) -> TrySchedule:
    return TrySchedule(
        Evidence(tries=read.tries, sample=read.sample, nodes=read.nodes, processes=read.processes, seconds=SMALL_JOB_S)
    )
