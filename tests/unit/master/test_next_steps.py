"""What a pipeline does next: pure decisions about steps that stand somehow."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_core.spec.later_inputs import StepOutput
from parallelrun_core.spec.pipeline import PipelineSpec
from parallelrun_core.wire.states import JobState, StepState
from parallelrun_master.policy.next_steps import Next, next_steps

W, R, C = StepState.WAITING, StepState.RUNNING, StepState.COMPLETED
F, X, S = StepState.FAILED, StepState.CANCELED, StepState.SKIPPED


def pipeline(needs: dict[str, str], **settings: Any) -> PipelineSpec:
    """A pipeline of steps, each with the names of those that it needs."""
    steps: dict[str, Any] = {name: {"type": "parallel", "job": {}, "after": of.split()} for name, of in needs.items()}
    for name, more in settings.pop("steps", {}).items():
        steps[name] |= more
    return PipelineSpec.parse({"steps": steps, **settings})


def following(spec: PipelineSpec, states: dict[str, StepState], **more: Any) -> Next:
    return next_steps(spec, spec.order(), states, more.pop("truths", {}), **more)


def test_steps_begin_side_by_side_and_each_when_all_that_it_needs_has_completed() -> None:
    spec = pipeline({"a": "", "b": "", "c": "a b"})
    assert following(spec, {"a": W, "b": W, "c": W}).begin == ["a", "b"]
    assert following(spec, {"a": C, "b": R, "c": W}).begin == []
    assert following(spec, {"a": C, "b": C, "c": W}).begin == ["c"]
    assert following(spec, {"a": C, "b": C, "c": C}).end is JobState.COMPLETED


def test_what_needs_a_failed_step_is_skipped_to_the_last_and_the_rest_goes_on() -> None:
    spec = pipeline({"a": "", "b": "a", "c": "b", "d": ""})
    now = following(spec, {"a": F, "b": W, "c": W, "d": W})
    assert list(now.skip) == ["b", "c"]
    assert all(skip.is_failure for skip in now.skip.values())
    assert now.begin == ["d"]
    assert now.end is None
    failures = frozenset("bc")
    assert following(spec, {"a": F, "b": S, "c": S, "d": C}, failures=failures).end is JobState.FAILED


def test_unless_others_may_go_on_after_a_failure_all_that_runs_is_canceled() -> None:
    spec = pipeline({"a": "", "b": "", "c": ""}, continue_on_step_failure=False)
    now = following(spec, {"a": F, "b": R, "c": W})
    assert now.cancel == ["b"]
    assert list(now.skip) == ["c"]
    assert now.begin == []
    assert now.end is None
    assert following(spec, {"a": F, "b": X, "c": S}).end is JobState.FAILED


def test_a_canceled_pipeline_cancels_what_runs_and_begins_nothing() -> None:
    spec = pipeline({"a": "", "b": "", "c": "a"})
    now = following(spec, {"a": R, "b": C, "c": W}, is_canceled=True)
    assert (now.cancel, now.begin, now.skip, now.end) == (["a"], [], {}, None)
    assert following(spec, {"a": X, "b": C, "c": W}, is_canceled=True).end is JobState.CANCELED


def test_a_skipped_step_whose_cause_has_completed_since_still_fails_the_pipeline() -> None:
    spec = pipeline({"a": "", "b": "a"})
    assert following(spec, {"a": C, "b": S}, failures=frozenset("b")).end is JobState.FAILED


@pytest.mark.parametrize("truth", [True, False])
def test_of_two_branches_one_runs_and_the_other_is_skipped_without_being_a_failure(truth: bool) -> None:
    of = {"step": "a", "output": "is_large"}
    branches = {
        "yes": {"conditions": [{"of": of}]},
        "no": {"conditions": [{"of": of, "is_true": False}]},
    }
    spec = pipeline({"a": "", "yes": "", "no": "", "after_no": "no"}, steps=branches)
    states = {"a": C, "yes": W, "no": W, "after_no": W}
    now = following(spec, states, truths={StepOutput(step="a", output="is_large"): truth})
    assert now.begin == (["yes"] if truth else ["no"])
    assert list(now.skip) == (["no", "after_no"] if truth else ["yes"])
    assert not any(skip.is_failure for skip in now.skip.values())
    assert following(spec, {"a": C, "yes": C, "no": S, "after_no": S}).end is JobState.COMPLETED


def test_a_condition_that_cannot_be_read_lets_the_step_begin_which_finds_out_why() -> None:
    spec = pipeline({"a": "", "b": ""}, steps={"b": {"conditions": [{"of": {"step": "a", "output": "x"}}]}})
    assert following(spec, {"a": C, "b": W}).begin == ["b"]


def test_a_constant_condition_needs_nothing() -> None:
    spec = pipeline({"a": "", "b": ""}, steps={"a": {"conditions": [{"of": False}]}})
    now = following(spec, {"a": W, "b": W})
    assert (list(now.skip), now.begin) == (["a"], ["b"])
