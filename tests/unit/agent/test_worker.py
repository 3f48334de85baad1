"""The stages of a worker's life: which one follows which, and what can't follow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import get_args

import pytest

from parallelrun_agent.policy.worker import NEVER, Stage, Worker, WrongStage

STEPS: dict[str, Callable[[Worker], None]] = {
    "pass_init": Worker.pass_init,
    "fail_init": lambda worker: worker.fail_init(10.0),
    "replace": Worker.replace,
    "end": lambda worker: worker.end(10.0),
    "condemn": lambda worker: worker.condemn("run_timeout", 5.0, 6.0),
    "kill": lambda worker: worker.kill("drained"),
}
WAYS: dict[Stage, list[str]] = {
    "starting": [],
    "ready": ["pass_init"],
    "replaced": ["pass_init", "replace"],
    "ending": ["pass_init", "end"],
    "condemned": ["pass_init", "condemn"],
    "killed": ["pass_init", "kill"],
}
LEGAL: dict[tuple[Stage, str], Stage] = {
    ("starting", "pass_init"): "ready",
    ("starting", "fail_init"): "ending",
    ("starting", "condemn"): "condemned",
    ("starting", "kill"): "killed",
    ("ready", "replace"): "replaced",
    ("ready", "end"): "ending",
    ("ready", "condemn"): "condemned",
    ("ready", "kill"): "killed",
    ("replaced", "end"): "ending",
    ("replaced", "condemn"): "condemned",
    ("replaced", "kill"): "killed",
    ("ending", "condemn"): "condemned",
    ("ending", "kill"): "killed",
    ("condemned", "kill"): "killed",
}
PAIRS = list(product(get_args(Stage), STEPS))


def worker_after(*steps: str) -> Worker:
    worker = Worker("p0", "s.p0", 0.0)
    for step in steps:
        STEPS[step](worker)
    return worker


@pytest.mark.parametrize("stage, step", [pair for pair in PAIRS if pair in LEGAL])
def test_a_step_leads_to_the_stage_that_the_diagram_shows(stage: Stage, step: str) -> None:
    worker = worker_after(*WAYS[stage])
    assert worker.stage == stage
    STEPS[step](worker)
    assert worker.stage == LEGAL[stage, step]


@pytest.mark.parametrize("stage, step", [pair for pair in PAIRS if pair not in LEGAL])
def test_a_step_that_the_diagram_does_not_show_raises_and_changes_nothing(stage: Stage, step: str) -> None:
    worker = worker_after(*WAYS[stage])
    before = {name: getattr(worker, name) for name in Worker.__slots__}
    with pytest.raises(WrongStage):
        STEPS[step](worker)
    assert {name: getattr(worker, name) for name in Worker.__slots__} == before


@pytest.mark.parametrize("step", ["pass_init", "fail_init", "replace", "end"])
def test_one_that_has_failed_in_init_can_only_be_killed(step: str) -> None:
    worker = worker_after("fail_init")
    with pytest.raises(WrongStage, match="ending"):
        STEPS[step](worker)


@pytest.mark.parametrize("end", ["condemn", "kill"])
@pytest.mark.parametrize("said", ["pass_init", "fail_init"])
def test_one_that_is_to_be_killed_in_init_may_say_how_that_ended(end: str, said: str) -> None:
    worker = worker_after(end, said)
    assert worker.stage == {"condemn": "condemned", "kill": "killed"}[end]
    assert worker.is_through_init == (said == "pass_init")


def test_each_stage_has_a_deadline_of_its_own_and_the_first_reason_stays() -> None:
    worker = worker_after("pass_init", "end")
    assert (worker.end_by, worker.kill_at) == (10.0, NEVER)
    worker.condemn("shutdown_timeout", 11.0, 12.0)
    assert (worker.end_by, worker.condemned_at, worker.kill_at) == (10.0, 11.0, 12.0)
    worker.kill("drained")
    assert worker.kill_reason == "shutdown_timeout"


@pytest.mark.parametrize("stage", get_args(Stage))
def test_what_is_to_end_is_not_counted_as_one_that_works_on(stage: Stage) -> None:
    assert worker_after(*WAYS[stage]).is_to_end == (stage in ("ending", "condemned", "killed"))
