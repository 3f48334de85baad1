"""Pipelines on a warm cluster of one node: what a step costs, what many of them do to the API, and what waiting costs.

- Ten trivial command steps in a row: seconds for each, from submission to the end that a client sees. For comparison,
  the same command as a job by itself, ten times in a row; `step_per_job` is the ratio of the two, round by round.
- 200 of them side by side: how long the API takes to answer meanwhile, to a client that asks for the pipeline and for
  its jobs in turn.
- A pipeline that waits: the CPU of one turn that finds nothing new, with 200 steps of which all run or none does, and
  what that makes in percent of one CPU, as such a turn is taken at its intervals. And the CPU of the master while a
  pipeline with 200 steps waits for one that sleeps, compared with that while the same command sleeps as a job.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any, Final

import httpx

from benchmarks import Size
from benchmarks.jobs import Jobs
from benchmarks.measure import Spread
from benchmarks.noop import SCRIPT
from benchmarks.stage import Stage
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.ids import new_job_id
from parallelrun_core.intake.launching import launch
from parallelrun_core.spec import PipelineSpec
from parallelrun_master.pipelines.turn import PATROL_MS, PipelineTurn
from parallelrun_master.settings import MasterSettings

_IN_A_ROW: Final = 10
_SIDE_BY_SIDE: Final = {"tiny": 10, "quick": 200, "full": 200}
_EVERY_S: Final = 0.02
_SECONDS: Final = {"tiny": 2.0, "quick": 45.0, "full": 90.0}
_FORK_S: Final = 2.0


def _command(text: str, *needs: str) -> dict[str, Any]:
    return {"type": "command", "job": {"command": text}, "after": needs}


def _pipeline(steps: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "pipeline", "steps": steps, "force_rerun": True}


def _run(jobs: Jobs, document: dict[str, Any]) -> float:
    began = time.perf_counter()
    made = jobs.client.jobs.create(document, upload_code=False)
    jobs.client.jobs.wait(made.id)
    return time.perf_counter() - began


def in_a_row(jobs: Jobs, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds for each step of a pipeline, and for each job by itself: the mean of ten, in each round."""
    names = [f"s{number}" for number in range(_IN_A_ROW)]
    steps = {name: _command("true", *names[max(0, at - 1) : at]) for at, name in enumerate(names)}
    of_steps, alone = [], []
    for _ in range(rounds):
        of_steps.append(_run(jobs, _pipeline(steps)) / _IN_A_ROW)
        alone.append(statistics.mean(_run(jobs, {"command": "true"}) for _ in names))
    return of_steps, alone


def side_by_side(jobs: Jobs, count: int) -> tuple[float, list[float]]:
    """Seconds that a pipeline of so many steps took, and that each answer of the API took meanwhile."""
    took: list[float] = []
    made = jobs.client.jobs.create(_pipeline({f"s{number}": _command("true") for number in range(count)}))
    is_over = threading.Event()

    def ask() -> None:
        headers = {"Authorization": f"Bearer {jobs.cluster.token}"}
        with httpx.Client(base_url=jobs.cluster.url, headers=headers, timeout=60, trust_env=False) as client:
            paths = f"/v1/jobs/{made.id}", f"/v1/jobs?parent={made.id}&limit=50"
            while not is_over.wait(_EVERY_S):
                for path in paths:
                    began = time.perf_counter()
                    client.get(path).raise_for_status()
                    took.append(time.perf_counter() - began)

    asking, began = threading.Thread(target=ask), time.perf_counter()
    asking.start()
    try:
        jobs.client.jobs.wait(made.id)
    finally:
        seconds = time.perf_counter() - began
        is_over.set()
        asking.join()
    return seconds, took


def turns(count: int, *, runs: bool) -> float:
    """CPU milliseconds of a turn that finds nothing new, with so many steps that all run, or wait for one that does."""
    first = {"first": _command("true")}
    rest = {f"s{number}": _command("true", *([] if runs else ["first"])) for number in range(count - 1)}
    with Stage() as stage:
        settings = MasterSettings(root=stage.home, redis_url=stage.url)
        spec = PipelineSpec.parse(_pipeline({**first, **rest}))
        record = JobRecord(job_id=new_job_id(), submitted=time.time(), code="", spec=spec.model_dump(mode="json"))
        launch(stage.redis, stage.home, record)
        folder, used = JobFolder(stage.home, record.job_id), []
        for _ in range(6):
            began = time.process_time()
            PipelineTurn(stage.connect(), folder, folder.record(), settings).run()
            used.append(1000 * (time.process_time() - began))
    return statistics.median(used[1:])


def waiting(jobs: Jobs, document: dict[str, Any], seconds: float) -> float:
    """CPU of the master while a job waits, in percent of one."""
    made = jobs.client.jobs.create(document, upload_code=False)
    while jobs.client.jobs.get(made.id).state != "processing":
        time.sleep(0.1)
    time.sleep(_FORK_S)
    before, began = jobs.cpu_by()["master"], time.perf_counter()
    time.sleep(seconds)
    used = 100 * (jobs.cpu_by()["master"] - before) / (time.perf_counter() - began)
    jobs.client.jobs.cancel(made.id)
    jobs.settle()
    return used


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    rounds = {"tiny": 1, "quick": 3, "full": 9}[size]
    count, seconds = _SIDE_BY_SIDE[size], _SECONDS[size]
    with Jobs(SCRIPT) as jobs:
        _run(jobs, {"command": "true"})
        of_steps, alone = in_a_row(jobs, rounds)
        wall_s, took = side_by_side(jobs, count)
        sleeping = _command("sleep 600")
        rest = {f"s{number}": _command("true", "first") for number in range(count - 1)}
        pipeline = waiting(jobs, _pipeline({"first": sleeping, **rest}), seconds)
        alone_idle = waiting(jobs, {"command": "sleep 600"}, seconds)
    running_ms, idle_ms = turns(count, runs=True), turns(count, runs=False)
    took.sort()
    return {
        "rounds": rounds,
        **Spread.of(of_steps).fields("step_s"),
        **Spread.of(alone).fields("job_s"),
        **Spread.of([step / job for step, job in zip(of_steps, alone, strict=True)]).fields("step_per_job"),
        "side_by_side": count,
        "side_by_side_s": f"{wall_s:.1f}",
        "api_answers": len(took),
        "api_p50_ms": f"{1000 * took[len(took) // 2]:.1f}",
        "api_p99_ms": f"{1000 * took[int(0.99 * (len(took) - 1))]:.1f}",
        "turn_ms_all_run": f"{running_ms:.1f}",
        "turn_ms_all_wait": f"{idle_ms:.1f}",
        "turn_percent_all_run": f"{100 * running_ms / PATROL_MS:.2f}",
        "master_percent_pipeline_waits": f"{pipeline:.2f}",
        "master_percent_job_waits": f"{alone_idle:.2f}",
    }
