"""The evidence of a job is what is in its folder, while it runs and after its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.adviser.advice import Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.evidence import Evidence
from parallelrun_core.adviser.reading.evidence import evidence_of
from parallelrun_core.folder.decisions import DecisionWriter
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult, Reopening
from parallelrun_core.folder.term_log import open_term
from parallelrun_core.layout import RETRIES
from parallelrun_core.wire.outcome import Failure, Use, encode_all
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from tests.unit.core.factories import outcome

BEGUN = 1_800_000_000.0
SPEC = {"entry_script": "main.py", "inputs": {"data": {"path": "/inputs/data"}}}
REPORT = """\
Mini-batch Id,Picked Count,Process,Process Start Time,Total,Succeeded,Failed,Elapsed Seconds,Process Seconds,\
Run Method Seconds,Status,Error Category,Error Message,Mini-batch Detail
,,n1/process000,2027-01-15T08:00:01.000000,,,,,,,ENTRY_SCRIPT_INIT_START,,,
,,n1/process000,2027-01-15T08:00:01.000000,,,,2.500000,,,ENTRY_SCRIPT_INIT_DONE,,,
0,1,n1/process000,2027-01-15T08:00:04.000000,1,1,0,1.0,0.1,1.0,RUN_EXCEPTION,X,"ENTRY_SCRIPT_INIT_DONE, it says",
,,n2/process001,2027-01-15T08:00:01.000000,,,,1.0,,,ENTRY_SCRIPT_INIT_EXCEPTION,INIT_EXCEPTION,"no, no",
,,n2/process002,2027-01-15T08:00:02.000000,,,,wh
"""
USAGE = """\
Utc Time,Cpu Percent,Memory Total (MB),Memory Available (MB),Cpu Pressure (s),Cpu Limit,Throttled (s),Cpus
2027-01-15T08:00:01.000000,50.0,1024.0,512.0,10.0,,1.5,4
2027-01-15T08:00:11.000000,90.0,1024.0,256.0,15.0,1.50,21.5,4
"""


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    made = JobFolder(tmp_path, "job_01kav3x8n2h7q5m9c4t6")
    made.create(JobRecord(job_id=made.job_id, submitted=BEGUN, code="", spec=SPEC))
    return made


def decide(folder: JobFolder, term: int, count: int, **fields: Any) -> None:
    writer = DecisionWriter(folder.path, term)
    writer.add([outcome(each, started=BEGUN + 4 + each, **fields) for each in range(count)])
    writer.sync()
    writer.close()


def ended(seconds: float) -> JobResult:
    progress = Progress(scheduled=4)
    return JobResult(
        job_id="job_01kav3x8n2h7q5m9c4t6", state=JobState.COMPLETED, started=BEGUN, ended=BEGUN + seconds,
        progress=progress,
    )  # fmt: skip


def of(tries: Evidence, column: str) -> list[float]:
    values: list[float] = getattr(tries.tries, column).tolist()
    return values


def test_a_job_that_has_just_begun_has_none(folder: JobFolder) -> None:
    evidence = evidence_of(folder)

    assert (len(evidence.tries), evidence.seconds, evidence.is_running) == (0, 0.0, True)
    assert advise(evidence).findings == []


def test_all_tries_are_read(folder: JobFolder) -> None:
    decide(folder, 1, 3, node="n1", elapsed_s=0.9, use=Use(peak_bytes=1 << 20))
    retries = open_term(folder.path, RETRIES, 1)
    failure = Failure("RUN_TIMEOUT", "too long")
    retries.append(encode_all([outcome(1, status="retry", started=BEGUN + 2, failure=failure, node="n2")]))
    retries.close()

    evidence = evidence_of(folder)

    assert of(evidence, "mini_batch") == [1, 0, 1, 2]
    assert of(evidence, "started_s") == [2, 4, 5, 6]
    assert of(evidence, "peak_bytes") == [0, 1 << 20, 1 << 20, 1 << 20]
    assert (evidence.nodes, evidence.categories) == (["n1", "n2"], ["", "RUN_TIMEOUT"])
    assert evidence.seconds == pytest.approx(6.9)
    assert evidence_of(folder, ended(9.0)).seconds == 9.0


def test_what_was_done_before_the_job_went_on_is_left_out(folder: JobFolder) -> None:
    decide(folder, 1, 3)
    folder.reopen(Reopening(generation=1, at=BEGUN + 1000, retry_failed=True))

    assert len(evidence_of(folder).tries) == 0


def test_workers_begin_when_their_init_is_done(folder: JobFolder) -> None:
    decide(folder, 1, 1, node="n1")
    report = folder.logs / "sys" / "job_report" / "processed_mini-batches.csv"
    report.parent.mkdir(parents=True)
    report.write_text(REPORT)

    inits = evidence_of(folder).inits

    assert [(init.node, init.seconds, init.is_done) for init in inits] == [("n1", 2.5, True), ("n2", 1.0, False)]
    assert inits[0].started_s == pytest.approx(1.0, abs=0.001)


def test_nodes_are_known_by_their_reports(folder: JobFolder) -> None:
    decide(folder, 1, 1, node="n1")
    perf = folder.logs / "sys" / "perf" / "n1"
    perf.mkdir(parents=True)
    (perf / "node_resource_usage.csv").write_text(USAGE)
    gpus = "Utc Time,Gpu,Name,Utilization Percent,Memory Total (MB),Memory Used (MB)\n"
    (perf / "node_gpu_usage.csv").write_text(f"{gpus}t,0,Fake,30,4096.0,1024.0\nt,1,Fake,10,4096.0,3072.0\n")

    use = evidence_of(folder).uses["n1"]

    assert (use.cpus, use.memory_bytes, use.memory_left_bytes) == (1.5, 1 << 30, 1 << 28)
    assert (use.cpu_pressure, use.throttled) == (0.5, 2.0)
    assert use.cpu_share == pytest.approx((50 + 900) / 11 / 100)
    assert (use.memory_pressure, use.threads) == (None, None)
    assert (use.gpu_share, use.gpu_memory_share) == (0.2, 0.75)


def test_logs_with_anything_in_them_cost_only_what_they_would_say(folder: JobFolder) -> None:
    decide(folder, 1, 5, node="n1")
    for name in ("sys/job_report/processed_mini-batches.csv", "sys/perf/n1/node_resource_usage.csv"):
        path = folder.logs / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x00\xff,\n" * 50 + b"ENTRY_SCRIPT_INIT_DONE\n")

    assert advise(evidence_of(folder), Thresholds(seconds=0.1)).basis is not None
