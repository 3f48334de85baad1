"""What is wrong with the document of an endpoint or a deployment is said all at once, and nothing of it is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.endpoints.document import read_deployment, read_endpoint
from parallelrun_core.errors import InvalidInput

STEP = {
    "type": "command",
    "command": "echo ${{inputs.word}}",
    "environment": "azureml:e@latest",
    "inputs": {"word": "${{parent.inputs.word}}"},
}
PIPELINE = {"type": "pipeline", "inputs": {"word": "hello"}, "jobs": {"say": STEP}}
DEPLOYMENT: dict[str, Any] = {"type": "pipeline", "name": "blue", "endpoint_name": "iris", "job_definition": PIPELINE}


def pointers(told: pytest.ExceptionInfo[InvalidInput]) -> list[str]:
    return [problem.pointer for problem in told.value.problems]


def test_all_that_is_wrong_with_an_endpoint_is_told() -> None:
    with pytest.raises(InvalidInput) as told:
        read_endpoint({"name": "a b", "defaults": {"deployment": "x", "name": "y"}})
    assert pointers(told) == ["/defaults/deployment", "/defaults/name", "/name"]


def test_all_that_is_wrong_with_a_deployment_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as told:
        read_deployment({**DEPLOYMENT, "name": "a b", "tags": ["x"], "description": [1]}, endpoint="other")
    assert pointers(told) == ["/name", "/endpoint_name", "/tags", "/description"]
    assert told.value.problems[1].message == "it is another name than 'other'"

    (tmp_path / "broken.yml").write_text("{")
    for component in ("broken.yml", "missing.yml", "azureml:missing:1"):
        with pytest.raises(InvalidInput) as told:
            read_deployment({**DEPLOYMENT, "job_definition": None, "component": component}, folder=tmp_path)
        assert pointers(told) == ["/component"]


def test_all_inputs_that_nobody_can_give_are_told() -> None:
    pipeline = {**PIPELINE, "inputs": {"word": "hello", "flag": True, "rate": 0.5, "count": {"type": "integer"}}}
    with pytest.raises(InvalidInput) as told:
        read_deployment({**DEPLOYMENT, "job_definition": pipeline, "inputs": {"flag": None, "rate": None}})
    assert {problem.pointer: problem.message.split(",")[0] for problem in told.value.problems} == {
        "/inputs/flag": "the input 'flag' is of type boolean",
        "/inputs/rate": "the input 'rate' is of type number",
        "/inputs/count": "the input 'count' is of type integer",
    }


def test_a_component_that_is_null_is_none() -> None:
    reading = read_deployment({**DEPLOYMENT, "component": None, "tags": None})
    assert (reading.tags, reading.slots["word"].default) == ({}, "hello")


def test_inputs_of_a_deployment_are_the_defaults_of_its_invocations() -> None:
    assert read_deployment({**DEPLOYMENT, "inputs": {"word": "there"}}).slots["word"].default == "there"
    assert read_deployment({**DEPLOYMENT, "inputs": None}).slots["word"].default == "hello"
