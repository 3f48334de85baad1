"""Pipelines on a cluster of real processes: what runs, in what order, and how they end."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.folder.decisions import read_outcomes
from parallelrun_core.folder.records import Reopening
from parallelrun_core.intake.cancelling import cancel
from parallelrun_core.intake.reopening import next_generation, reopen
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.store.rq.wake import ask_for_leader
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

SLOW = """
import os, time
def run(mini_batch):
    time.sleep(600 if os.path.exists(os.environ["SWITCH"]) else 0)
    return ["done"]
"""
PICKY = """
import os
def run(mini_batch):
    names = [os.path.basename(path) for path in mini_batch]
    if os.path.exists(os.environ["SWITCH"]) and "file-0000003.txt" in names:
        raise ValueError("not today")
    return names
"""
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


def go_on(cluster: Cluster, job: str, *, retry_failed: bool = False) -> None:
    """What the API does when it is asked to resume or retry."""
    cluster.until(lambda: job not in cluster.registry.active_jobs(), "the job is retired")
    folder = cluster.folder(job)
    reopening = Reopening(generation=next_generation(folder), at=time.time(), retry_failed=retry_failed)
    reopen(cluster.registry, folder, reopening)
    ask_for_leader(cluster.redis, job, attempt=f"again-{reopening.generation}")


def picky(cluster: Cluster, **job: Any) -> dict[str, Any]:
    """A step of which one mini-batch fails as long as there is the file `switch`."""
    switch = cluster.home / "switch"
    switch.touch()
    fields = {"mini_batch_size": 1, "run_max_try": 1, "environment_variables": {"SWITCH": str(switch)}, **job}
    return {**reading(cluster.files(5), **fields), "script": PICKY}


def test_resuming_keeps_what_has_completed_and_runs_what_failed_and_what_needs_it() -> None:
    with Cluster(slots=2) as cluster:
        steps = {
            "good": reading(cluster.files(5)),
            "bad": picky(cluster, mini_batch_error_threshold=0),
            "needs_bad": after("bad"),
        }
        pipeline = cluster.submit_pipeline(ROWS, steps)
        assert cluster.result(pipeline).state is JobState.FAILED
        before = cluster.step_jobs(pipeline)
        (cluster.home / "switch").unlink()
        go_on(cluster, pipeline)
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        after_it = cluster.step_jobs(pipeline)
        assert {name: after_it[name] for name in before} == before
        assert cluster.folder(before["good"]).generation() == 0
        assert cluster.folder(before["bad"]).generation() == 1
        assert len(cluster.output(cluster.result(after_it["needs_bad"]))) == 5


def test_retrying_also_tries_what_failed_in_completed_steps_and_remakes_the_rest() -> None:
    with Cluster(slots=2) as cluster:
        steps = {"first": picky(cluster), "second": after("first"), "other": reading(cluster.files(5))}
        pipeline = cluster.submit_pipeline(ROWS, steps)
        assert cluster.result(pipeline).state is JobState.COMPLETED
        before = cluster.step_jobs(pipeline)
        assert len(cluster.output(cluster.result(before["second"]))) == 4
        (cluster.home / "switch").unlink()
        go_on(cluster, pipeline, retry_failed=True)
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        now = cluster.step_jobs(pipeline)
        assert (now["first"], now["other"]) == (before["first"], before["other"])
        assert now["second"] != before["second"]
        assert len(cluster.output(cluster.result(now["second"]))) == 5
        assert cluster.folder(before["other"]).generation() == 0


def test_canceling_a_pipeline_cancels_all_its_jobs_and_resuming_it_resumes_them() -> None:
    with Cluster(slots=2) as cluster:
        switch = cluster.home / "switch"
        switch.touch()
        slow = {**reading(cluster.files(1), environment_variables={"SWITCH": str(switch)}), "script": SLOW}
        inner = {"type": "pipeline", "job": {"steps": {"sleep": slow, "more": after("sleep")}}}
        pipeline = cluster.submit_pipeline(ROWS, {"inner": inner, "sleep": slow})
        cluster.until(lambda: len(cluster.step_jobs(pipeline)) == 2, "both steps have begun")
        nested = cluster.step_jobs(pipeline)["inner"]
        cluster.until(lambda: "sleep" in cluster.step_jobs(nested), "the inner pipeline has begun")
        cancel(cluster.redis, cluster.folder(pipeline))
        assert cluster.result(pipeline).state is JobState.CANCELED
        before = [nested, *cluster.step_jobs(nested).values(), *cluster.step_jobs(pipeline).values()]
        assert {cluster.result(job).state for job in before} == {JobState.CANCELED}
        switch.unlink()
        go_on(cluster, pipeline)
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        jobs = [nested, *cluster.step_jobs(nested).values(), *cluster.step_jobs(pipeline).values()]
        assert set(before) < set(jobs)
        assert {cluster.result(job).state for job in jobs} == {JobState.COMPLETED}


def test_pipelines_in_pipelines_take_no_place_of_a_leader_while_they_wait() -> None:
    with Cluster(slots=2) as cluster:
        step: dict[str, Any] = reading(cluster.files(3))
        for _ in range(4):  # twice as deep as the master has places
            outputs = {"rows": {"type": "uri_file", "of": {"step": "inner", "output": "rows"}}}
            step = {"type": "pipeline", "job": {"steps": {"inner": step}, "outputs": outputs}}
        pipeline = cluster.submit_pipeline(ROWS, {"deep": step, "last": after("deep")})
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        assert len(cluster.output(cluster.result(cluster.step_jobs(pipeline)["last"]))) == 3


@pytest.mark.parametrize("point", ["step.decided", "step.launched", "lead.acquired", "finish.after_result"])
def test_a_master_that_dies_at_this_step_costs_nothing(point: str, tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    with Cluster(leader_s=0.8, failpoints=f"{point}=kill:{reached}") as cluster:
        pipeline = cluster.submit_pipeline(ROWS, {"first": reading(cluster.files(4)), "second": after("first")})
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        assert reached.exists()
        jobs = cluster.step_jobs(pipeline)
        assert len(list(cluster.root.glob("jobs/job_*"))) == 3
        assert all(len(list(read_outcomes(cluster.folder(job).path))) == 1 for job in jobs.values())


def test_a_redis_that_forgets_everything_costs_no_step() -> None:
    with Cluster(leader_s=1) as cluster:
        steps = {"first": reading(cluster.files(4)), "second": after("first"), "third": after("second")}
        pipeline = cluster.submit_pipeline(ROWS, steps)
        cluster.until(lambda: "second" in cluster.step_jobs(pipeline), "the second step has begun")
        cluster.redis.flushall()
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        assert len(list(cluster.root.glob("jobs/job_*"))) == 4


def test_an_equal_step_reuses_what_was_made_until_an_input_changes() -> None:
    check_reuse()


def check_reuse(*, without: str = "") -> None:
    with Cluster(slots=2, without=without) as cluster:
        data = cluster.home / "in"
        data.mkdir()
        (data / "a.txt").write_text("a")
        steps = {"first": reading(data), "second": after("first")}

        def run(**settings: Any) -> tuple[str, dict[str, str]]:
            pipeline = cluster.submit_pipeline(ROWS, steps, **settings)
            result = cluster.result(pipeline)
            assert result.state is JobState.COMPLETED, result.failure
            return pipeline, cluster.step_jobs(pipeline)

        _, made = run()
        pipeline, again = run()
        assert again == made
        assert len(list(cluster.root.glob("jobs/job_*"))) == 4
        assert (
            f"reuses the outputs of job {made['first']}"
            in (cluster.folder(pipeline).logs / "job_result.txt").read_text()
        )
        _, forced = run(force_rerun=True)
        assert not set(forced.values()) & set(made.values())
        (data / "a.txt").write_text("other")
        _, changed = run()
        assert not set(changed.values()) & {*made.values(), *forced.values()}
        cluster.result(changed["second"])
        Path(cluster.result(changed["second"]).output).unlink()
        _, lost = run()
        assert lost["first"] == changed["first"]
        assert lost["second"] != changed["second"]


def test_a_condition_in_a_file_decides_which_branch_runs() -> None:
    decides = "def run(mini_batch):\n    return ['False']\n"
    with Cluster(slots=2) as cluster:
        files = cluster.files(1)
        of = {"step": "decide", "output": "rows"}
        steps = {
            "decide": {**reading(files), "script": decides},
            "yes": {**reading(files), "conditions": [{"of": of}]},
            "no": {**reading(files), "conditions": [{"of": of, "is_true": False}]},
        }
        pipeline = cluster.submit_pipeline(ROWS, steps)
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        assert set(cluster.step_jobs(pipeline)) == {"decide", "no"}
        steps["decide"]["script"] = "def run(mini_batch):\n    return ['perhaps']\n"
        failed = cluster.result(cluster.submit_pipeline(ROWS, steps))
        assert failed.state is JobState.FAILED
        assert failed.failure is not None
        assert "neither true nor false" in failed.failure.summary


def test_an_output_that_nobody_wrote_fails_the_step_that_needs_it_with_its_name() -> None:
    with Cluster(slots=2) as cluster:
        first = reading(cluster.files(1))
        first["job"]["outputs"]["model"] = {"type": "uri_file"}
        second = {"job": {}, "inputs_from": {"data": {"step": "first", "output": "model", "type": "uri_file"}}}
        result = cluster.result(cluster.submit_pipeline(ROWS, {"first": first, "second": second}))
        assert result.failure is not None
        assert "the output 'model' of the step 'first'" in result.failure.summary


def test_a_step_passes_its_logs_and_metrics_on_to_the_pipeline() -> None:
    script = "from parallelrun import log_metric\ndef run(mini_batch):\n    log_metric('loss', 0.5)\n    return ['x']\n"
    with Cluster(slots=2) as cluster:
        wish = {"copy_logs_to_parent": True, "push_metrics_to_parent": True, "metrics_name_prefix": "train_"}
        step = {**reading(cluster.files(1), **wish), "script": script}
        pipeline = cluster.submit_pipeline(ROWS, {"train": step})
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        logs = cluster.folder(pipeline).logs
        assert "has completed" in (logs / "train" / "job_result.txt").read_text()
        assert result.metrics == {"train_loss": 0.5}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users")
def test_workers_of_all_steps_are_the_same_user_and_read_each_others_outputs() -> None:
    script = """
import os
def run(mini_batch):
    rows = [str(os.getuid())]
    for path in mini_batch:
        with open(path) as file:
            rows += file.read().split()
    return rows
"""
    with Cluster(slots=2, worker_uids="20000-59999") as cluster:
        cluster.files(1).chmod(0o755)
        places = Places(roots=[str(cluster.home)], are_jobs_apart=True)
        inner = {"each": {"job": after("")["job"], "inputs_from": {"data": {"input": "data", "type": "uri_file"}}}}
        outputs = {"rows": {"type": "uri_file", "of": {"step": "each", "output": "rows"}}}
        nested = {"type": "pipeline", "job": {"steps": inner, "outputs": outputs}}
        nested["inputs_from"] = {"data": {"step": "first", "output": "rows", "type": "uri_file"}}
        steps = {"first": reading(cluster.files(1)), "nested": nested, "last": after("nested")}
        pipeline = cluster.submit_pipeline(script, steps, places=places)
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
        rows = cluster.output(cluster.result(cluster.step_jobs(pipeline)["last"]))
        assert len(rows) == 3
        assert len(set(rows)) == 1
        assert 20000 <= int(rows[0]) < 60000


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run workers as other users")
def test_workers_of_a_later_step_read_what_all_turns_of_a_loop_have_made() -> None:
    with Cluster(slots=2, worker_uids="20000-59999") as cluster:
        taken = {"taken": {"type": "uri_folder"}}
        body = {
            "type": "command",
            "job": {"command": "echo ${{inputs.number}} > ${{outputs.taken}}/one.txt", "outputs": taken},
            "inputs_from": {"number": {"input": "number", "literal": "string"}},
            "outputs_to": {"taken": "taken"},
        }
        loop = {"type": "parallel_for", "items": {name: {"number": {"value": name}} for name in ("a", "b")}}
        outputs = {"taken": {"type": "uri_folder", "of": {"step": "body", "output": "taken"}}}
        each = {"type": "pipeline", "job": {"steps": {"body": body}, "outputs": outputs, "loop": loop}}
        last = {
            "type": "command",
            "job": {
                "command": "cat ${{inputs.all}}/*/one.txt > ${{outputs.rows}}",
                "outputs": {"rows": {"type": "uri_file"}},
            },
            "inputs_from": {"all": {"step": "each", "output": "taken", "type": "uri_folder"}},
        }
        places = Places(roots=[str(cluster.home)], are_jobs_apart=True)
        pipeline = cluster.submit_pipeline("", {"each": each, "last": last}, places=places)
        result = cluster.result(pipeline)
        assert result.state is JobState.COMPLETED, result.failure
