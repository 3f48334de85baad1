"""Whole pipelines with faults: five steps, and one more in a pipeline among them; and what is wrong at their end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.pipelines.records import read_records
from parallelrun_core.wire.states import JobState
from tests.chaos.faults import FaultInjector
from tests.chaos.oracle import ENTRY_SCRIPT, examine
from tests.cluster import Cluster

LEASE_S = 0.8
MINI_BATCHES = 150
ITEMS = 4
_PATIENT = {"run_max_try": 1000, "lost_leases": 1000}
_JOBS = 7
"""The pipeline, its five steps, and the one step of the pipeline among them."""
_MARK = '[ $(( $$ % 3 )) -ne 0 ] || touch "$MARKS/$PPID"; sleep 0.1; '
"""Lets a third of the tries be killed: a command takes longer than the time between two kills."""
_SPREAD = (
    "mkdir -p ${{outputs.files}}; cat ${{inputs.left}} ${{inputs.right}} | cut -d' ' -f1 | sort -u | "
    "(cd ${{outputs.files}} && xargs touch)"
)
_COUNT = "sort -u ${{inputs.rows}} | wc -l > ${{outputs.count}}"


@dataclass(frozen=True)
class PipelineReport:
    """What happened in one pipeline with faults."""

    problems: list[str]
    """In words; none if it kept its promise."""
    faults: Counter[str]


def kills(*, seed: int, everything: bool = True, without: str = "") -> PipelineReport:
    """Every role is killed while a pipeline of five steps runs, and Redis twice."""
    with Cluster(nodes=2, slots=2, lease_s=LEASE_S, leader_s=1, api=True, without=without) as cluster:
        marks = cluster.home / "marks"
        marks.mkdir()
        pipeline = cluster.submit_pipeline(ENTRY_SCRIPT, _steps(cluster, marks), force_rerun=True)
        with FaultInjector(
            cluster, seed=seed, marks=marks, redis_restarts=2, pauses=True, all_roles=everything
        ) as injector:
            result = cluster.result(pipeline, timeout_s=300)
        if result.state is not JobState.COMPLETED:
            return PipelineReport([f"the pipeline ended {result.state}: {result.failure}"], injector.count)
        return PipelineReport(_problems(cluster, pipeline), injector.count)


def _steps(cluster: Cluster, marks: Path) -> dict[str, dict[str, Any]]:
    given: dict[str, Any] = {"environment_variables": {"MARKS": str(marks)}, **_PATIENT}
    rows = {"outputs": {"rows": {"type": "uri_file"}}, "append_row_to": "rows", "mini_batch_size": ITEMS, **given}
    files = {"inputs": {"data": {"path": str(cluster.files(MINI_BATCHES * ITEMS))}}}

    def of(step: str, output: str, kind: str = "uri_file") -> dict[str, str]:
        return {"step": step, "output": output, "type": kind}

    inner = {"each": {"job": rows, "inputs_from": {"data": {"input": "data"}}}}
    outputs = {"rows": {"type": "uri_file", "of": {"step": "each", "output": "rows"}}}
    return {
        "left": {"job": {**rows, **files}},
        "right": {"job": {**rows, **files}},
        "spread": {
            "type": "command",
            "job": {"command": _MARK + _SPREAD, "outputs": {"files": {}}, **given},
            "inputs_from": {"left": of("left", "rows"), "right": of("right", "rows")},
        },
        "inner": {
            "type": "pipeline",
            "job": {"steps": inner, "outputs": outputs},
            "inputs_from": {"data": of("spread", "files", "uri_folder")},
        },
        "count": {
            "type": "command",
            "job": {"command": _MARK + _COUNT, "outputs": {"count": {"type": "uri_file"}}, **given},
            "inputs_from": {"rows": of("inner", "rows")},
        },
    }


def _problems(cluster: Cluster, pipeline: str) -> list[str]:
    """What is wrong with a pipeline that has completed."""
    jobs = cluster.step_jobs(pipeline)
    each = cluster.step_jobs(jobs["inner"])["each"]
    problems = []
    for name, job in {"left": jobs["left"], "right": jobs["right"], "each": each}.items():
        finding = examine(cluster.folder(job), cluster.result(job))
        if not finding.is_clean:
            problems.append(f"{name}: {finding}")
    for name in ("spread", "count"):
        decisions = [outcome.status for outcome in read_decisions(cluster.folder(jobs[name]).path)]
        if decisions != ["done"]:
            problems.append(f"{name} was decided as {decisions}")
    there = sorted(path.name for path in cluster.root.glob("jobs/job_*"))
    if len(there) != _JOBS:
        problems.append(f"there are {len(there)} jobs in place of {_JOBS}: a step was run more than once")
    if again := [job for job in there if cluster.folder(job).generation()]:
        problems.append(f"{again} were run again")
    for folder in (cluster.folder(pipeline), cluster.folder(jobs["inner"])):
        if twice := [name for name, records in read_records(folder).items() if len(records) != 1]:
            problems.append(f"{twice} were decided more than once")
    files = len(list((cluster.folder(jobs["spread"]).outputs / "files").iterdir()))
    count = int((cluster.folder(jobs["count"]).outputs / "count").read_text())
    if (files, count) != (MINI_BATCHES * ITEMS, MINI_BATCHES * ITEMS):
        problems.append(f"{files} files were spread, and {count} rows counted")
    return problems
