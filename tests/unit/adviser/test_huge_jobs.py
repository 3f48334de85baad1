"""Advice on huge jobs: of any number of tries in little memory and time, and the same as on a small one."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from parallelrun_core.adviser.advice import Advice, Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.asked import PATTERN, parse_what_if
from parallelrun_core.adviser.evidence import RETRY, Evidence, MeasuredSettings, Sample
from parallelrun_core.adviser.reading.tries import read_tries
from parallelrun_core.adviser.schedule import TrySchedule
from parallelrun_core.adviser.what_if import curve_of
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.folder.decisions import NAME
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.layout import RETRIES
from parallelrun_core.wire.outcome import encode_all
from tests.unit.adviser.jobs import went
from tests.unit.core.factories import outcome

BEGUN = 1_800_000_000.0
LANES = 8
TOOK_S = 0.01
BLOCK = 100
SPEC = {"entry_script": "main.py", "inputs": {"data": {"path": "/inputs/data"}}, "mini_batch_size": "100000"}


def written(folder: Path, count: int, retried: int = 0) -> None:
    """The logs of a job with so many mini-batches, of 100,000 items each; some were tried twice."""
    for name, status, numbers in ((NAME, "done", range(count)), (RETRIES, "retry", range(0, retried * 5, 5))):
        one = outcome(status=status, items=100_000, elapsed_s=TOOK_S, run_s=TOOK_S * 0.9)
        begun = BEGUN + 2 - (status == "retry")
        log = open_term(folder, name, 1)
        for first in range(0, len(numbers), BLOCK):
            block = numbers[first : first + BLOCK]
            log.append(encode_all([replace(one, **lane_of(number, begun)) for number in block]))
        log.sync()
        log.close()


def lane_of(number: int, begun: float) -> dict[str, Any]:
    """The fields of a mini-batch that is one of many, all lanes at work at once."""
    started = begun + number // LANES * TOOK_S * 1.5
    process = f"process{number % LANES // 2}"
    return {"mini_batch": number, "node": f"node{number % 2}", "process": process, "started": started}


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    folder = JobFolder(tmp_path_factory.mktemp("root"), "job_01kav3x8n2h7q5m9c4t6")
    folder.create(JobRecord(job_id=folder.job_id, submitted=BEGUN, code="", spec=SPEC))
    written(folder.path, 1_000_000)
    return folder


_ADVISE = """
import sys
from pathlib import Path
from parallelrun_core.adviser import advising, asked, what_if
from parallelrun_core.adviser.advice import Thresholds
from parallelrun_core.adviser.reading.evidence import evidence_of
from parallelrun_core.folder.job_folder import JobFolder
import msgspec
def most_kb():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
before = most_kb()
evidence = evidence_of(JobFolder(Path(sys.argv[1]), sys.argv[2]))
advice = advising.advise(evidence, Thresholds(seconds=1.0))
for setting, most in zip(asked.SETTINGS, (10_000, 4096, 1_000_000), strict=True):
    what_if.curve_of(evidence, setting, [1, 2, most])
grown = most_kb() - before
print(msgspec.json.encode([advice, grown]).decode())
"""


def test_advice_on_a_million_tries_reads_a_sample_and_takes_little_memory(million: JobFolder) -> None:
    """A hundred million would take the same: what is read of a log is bounded."""
    command = [sys.executable, "-c", _ADVISE, str(million.root), million.job_id]
    advice, grown_kb = msgspec.json.decode(
        subprocess.run(command, check=True, capture_output=True, timeout=60).stdout, type=tuple[Advice, int]
    )

    assert advice.basis is not None
    assert advice.basis.mini_batches == pytest.approx(1_000_000, rel=0.01)
    assert advice.basis.looked_at < 500_000
    assert advice.basis.seconds == pytest.approx(1_000_000 / LANES * TOOK_S * 1.5, rel=0.01)
    assert f"a sample of {advice.basis.looked_at:,} tries" in advice.summary
    assert grown_kb < 400 << 10


def test_a_sample_counts_what_the_whole_has(tmp_path: Path) -> None:
    written(tmp_path, 60_000, retried=12_000)
    whole, some = read_tries(tmp_path, BEGUN), read_tries(tmp_path, BEGUN, most_bytes=1 << 20)

    assert (whole.sample.is_all, whole.sample.each, len(whole.tries)) == (True, 1.0, 72_000)
    assert len(some.tries) < 12_000
    of_all, of_some = (
        TrySchedule(
            Evidence(tries=read.tries, sample=read.sample, nodes=read.nodes, processes=read.processes, seconds=200)
        )
        for read in (whole, some)
    )
    assert of_some.count == pytest.approx(of_all.count, rel=0.02)
    assert float(of_some.work.sum()) * some.sample.each == pytest.approx(float(of_all.work.sum()), rel=0.02)
    assert float(of_some.lost.sum()) * some.sample.each == pytest.approx(float(of_all.lost.sum()), rel=0.25)
    assert of_some.base_s == pytest.approx(of_all.base_s, rel=0.2)
    assert of_some.after_s == pytest.approx(of_all.after_s, abs=3)  # the end of the job is in it
    is_retry = some.tries.status == RETRY
    assert set(some.tries.mini_batch[is_retry]) <= set(some.tries.mini_batch[~is_retry])


@pytest.mark.parametrize("seconds", [0.02, 40.0])
def test_the_same_is_said_of_a_sample(seconds: float) -> None:
    """Mini-batches that are too small or too large are so in each part of a job."""
    work = np.random.default_rng(7).uniform(0.9, 1.1, 4000) * seconds
    whole = went([*work, *([seconds * 400] if seconds > 1 else [])])
    at = np.arange(len(whole.tries)) // 400 % 5 == 0
    at[-400:] = True
    some = Evidence(**{
        **vars(whole), "tries": whole.tries.where(at), "sample": Sample(len(at) / at.sum(), stretches=3),
    })  # fmt: skip

    assert ids(some) == ids(whole)
    assert ids(whole)


def ids(evidence: Evidence) -> list[str]:
    return [finding.id for finding in advise(evidence, Thresholds(seconds=1.0)).findings]


def test_one_mini_batch_that_could_be_divided_without_end_costs_nothing() -> None:
    evidence = went([1e-6] * 999 + [36_000.0], settings=MeasuredSettings(size=1 << 40, unit="bytes"), items=1 << 40)
    tracemalloc.start()
    try:
        advise(evidence)
        curve_of(evidence, "mini_batch_size", [1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100 << 20


def test_more_workers_than_can_be_scheduled_are_refused() -> None:
    with pytest.raises(Conflict, match="more than 100,000 workers"):
        curve_of(went([1.0] * 100), "nodes", [1, 100_000])


def test_counts_of_a_sample_are_said_to_be_about_right() -> None:
    assert (Sample().count(12_345), Sample(10.04, stretches=4).count(12_345)) == ("12,345", "about 120,000")


@given(st.from_regex(PATTERN, fullmatch=True))
def test_what_the_schema_admits_is_computed(asked: str) -> None:
    setting, values = parse_what_if(asked)

    assert 1 <= len(values) <= 64
    assert len(curve_of(went([1.0] * 9, nodes=1, processes=1), setting, values[:2]).points) == len(values[:2])


@pytest.mark.parametrize("asked", ["nodes=1..64\n", "nodes= 1", "nodes=+1", "nodes=1_0", "nodes=100000", "=1"])
def test_what_it_does_not_admit_is_refused(asked: str) -> None:
    with pytest.raises(InvalidInput):
        parse_what_if(asked)
