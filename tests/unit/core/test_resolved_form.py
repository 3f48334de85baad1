"""Pipelines as the client sends them: with all expressions resolved, and checked again by whoever gets them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job

MAKE = {"type": "command", "job": {"command": "ls", "outputs": {"made": {}}}, "outputs_to": {"made": "all"}}
USE = {
    "type": "parallel",
    "job": {"entry_script": "a.py", "inputs": {"n": {"value": 3}}},
    "inputs_from": {"files": {"step": "make", "output": "made"}},
}
INNER = {
    "type": "pipeline",
    "job": {"type": "pipeline", "steps": {"use": {**USE, "inputs_from": {"files": {"input": "data"}}}}},
    "inputs_from": {"data": {"step": "make", "output": "made"}},
}
SENT: dict[str, Any] = {
    "type": "pipeline",
    "outputs": {"all": {"of": {"step": "make", "output": "made"}}},
    "steps": {"make": MAKE, "use": USE, "inner": INNER},
}


def test_each_step_can_be_checked_as_far_as_it_is_known() -> None:
    reading = read_job(SENT)
    assert reading.spec.model_dump(mode="json", exclude_unset=True)["steps"].keys() == {"make", "use", "inner"}
    known = {path: list(job.job.inputs) for path, job in reading.jobs()}
    assert known == {"make": [], "use": ["n"], "inner/use": ["n"]}
    with pytest.raises(InvalidInput, match="make, use, inner"):
        assert reading.job.name


def test_problems_of_a_step_are_located_in_the_whole() -> None:
    reading = read_job(SENT)
    ((_, deep),) = ((path, job) for path, job in reading.jobs() if path == "inner/use")
    with pytest.raises(InvalidInput) as told, deep.locating_problems():
        raise InvalidInput.at("/entry_script", "it is wrong")
    assert told.value.problems[0].pointer == "/steps/inner/job/steps/use/job/entry_script"


@pytest.mark.parametrize(
    "spoil, pointer, why",
    [
        (lambda steps: steps["use"]["inputs_from"]["files"].update(output="no"), "use/inputs_from/files", "no output"),
        (lambda steps: steps["use"]["inputs_from"]["files"].update(step="no"), "use", "there is none"),
        (lambda steps: steps["use"]["inputs_from"].update(files={"input": "data"}), "use/inputs_from/files", "outer"),
        (lambda steps: steps["make"].update(outputs_to={"made": "no"}), "make/outputs_to/made", "no output 'no'"),
        (lambda steps: steps["use"].update(outputs_to={"x": "all"}), "use/outputs_to/x", "another one"),
        (lambda steps: steps["make"].update(after=["use"]), "make", "wait for each other"),
        (lambda steps: steps["use"]["job"].update(entry="a.py"), "use/job/entry", "unknown field"),
        (lambda steps: steps["use"]["job"].update(inputs=3), "use/job/inputs", "mapping"),
        (
            lambda steps: steps["make"].update(conditions=[{"of": {"step": "use", "output": "x"}}]),
            "make",
            "wait for each other",
        ),
        (
            lambda steps: steps["inner"]["job"]["steps"]["use"]["inputs_from"]["files"].update(input="no"),
            "inner/job/steps/use/inputs_from/files",
            "no outer pipeline makes the input 'no'",
        ),
        (
            lambda steps: steps["inner"]["job"]["steps"]["use"]["job"].update(mini_batch_size=0),
            "inner/job/steps/use/job/mini_batch_size",
            "greater than",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    spoil: Callable[[dict[str, Any]], object], pointer: str, why: str
) -> None:
    document = copy.deepcopy(SENT)
    spoil(document["steps"])
    with pytest.raises(InvalidInput) as told:
        read_job(document)
    by_pointer = {problem.pointer: str(problem) for problem in told.value.problems}
    assert why in by_pointer.get(f"/steps/{pointer}", ""), by_pointer
