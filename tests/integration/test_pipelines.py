"""Pipelines on a cluster of real processes: what runs, in what order, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun_core.states import JobState
from tests.cluster import Cluster

ROWS = """
import os
def run(mini_batch):
    rows = []
    for path in mini_batch:
        with open(path) as file:
            rows += [line.strip() + "+" for line in file] or [os.path.basename(path)]
    return rows
"""


def reading(source: str | Path, **job: Any) -> dict[str, Any]:
    """A step that reads a path, and writes its rows to the output `rows`."""
    fields = {"inputs": {"data": {"path": str(source)}}, "outputs": {"rows": {"type": "uri_file"}}, **job}
    return {"job": {"append_row_to": "rows", **fields}}


def after(step: str, **job: Any) -> dict[str, Any]:
    """A step that reads the rows of another one, and writes its own."""
    fields = {"outputs": {"rows": {"type": "uri_file"}}, "append_row_to": "rows", **job}
    return {"job": fields, "inputs_from": {"data": {"step": step, "output": "rows", "type": "uri_file"}}}


def test_a_row_of_steps_hands_its_outputs_on_and_the_pipeline_completes() -> None:
    with Cluster(slots=2) as cluster:
        pipeline = cluster.submit_pipeline(
            ROWS, {"first": reading(cluster.files(20)), "second": after("first"), "third": after("second")}
        )
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        jobs = cluster.step_jobs(pipeline)
        last = cluster.result(jobs["third"])
        assert sorted(cluster.output(last)) == [f"file-{number:07d}.txt++" for number in range(20)]
        assert result.progress.rows == 60
        assert cluster.folder(jobs["second"]).record().parent is not None
        cluster.until(lambda: not cluster.registry.active_jobs(), "all jobs are retired")
        told = (cluster.folder(pipeline).logs / "job_result.txt").read_text()
        assert "3 completed" in told
        assert all(job in told for job in jobs.values())


def test_steps_that_need_a_failed_one_are_skipped_and_the_others_run() -> None:
    failing = "def run(mini_batch):\n    raise ValueError('no luck')\n"
    with Cluster(slots=2) as cluster:
        files = cluster.files(4)
        steps = {
            "good": reading(files),
            "bad": {**reading(files, run_max_try=1), "script": failing},
            "needs_bad": after("bad"),
            "needs_good": after("good"),
        }
        pipeline = cluster.submit_pipeline(ROWS, steps)
        result = cluster.result(pipeline)
        assert result.state is JobState.FAILED
        assert result.failure is not None
        jobs = cluster.step_jobs(pipeline)
        assert result.failure.code == "STEP_FAILED"
        assert "'bad'" in result.failure.summary
        assert jobs["bad"] in result.failure.summary
        assert "no luck" in result.failure.first_cause
        assert set(jobs) == {"good", "bad", "needs_good"}
        assert cluster.result(jobs["needs_good"]).state is JobState.COMPLETED
        told = (cluster.folder(pipeline).logs / "job_result.txt").read_text()
        assert "needs_bad: skipped: it needs the step 'bad', which has failed" in told
        assert cluster.registry.status(pipeline).failure == result.failure
