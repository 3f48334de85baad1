"""Loops as Python objects: each is a pipeline document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun import Input, Output, PythonScriptStep, RunFunction, do_while, parallel_for, parallel_run_function
from parallelrun.builders.loops import Loop
from parallelrun.errors import InvalidInput
from parallelrun.job_file.reading import read_spec
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.spec.pipeline import Loop as LoopSpec


def spec_of(loop: Loop) -> tuple[PipelineSpec, LoopSpec]:
    outer = read_spec(loop).pipeline
    assert outer is not None
    (step,) = outer.steps.values()
    inner = step.pipeline_spec({})
    assert inner.loop is not None
    return outer, inner.loop


def test_a_step_for_each_item_has_the_outputs_of_all_turns(tmp_path: Path) -> None:
    score = parallel_run_function(
        inputs={"files": Input(type="uri_folder"), "limit": Input(type="integer")},
        outputs={"scores": Output(type="uri_file")},
        input_data="${{inputs.files}}",
        mini_batch_size="1",
        task=RunFunction(
            entry_script="score.py", program_arguments="--limit ${{inputs.limit}}", environment="azureml:e@latest"
        ),
    )
    (tmp_path / "data").mkdir()
    items = {"low": {"limit": 1}, "high": {"limit": 9}}
    outer, loop = spec_of(
        parallel_for(body=score(files=tmp_path / "data"), items=items, max_concurrency=1, name="sweep")
    )
    assert outer.name == "sweep"
    assert {name: turn["limit"].model_dump() for name, turn in loop.items.items()} == {
        "low": {"value": 1},
        "high": {"value": 9},
    }
    assert {name: (output.type, output.of and output.of.output) for name, output in outer.outputs.items()} == {
        "scores": ("uri_folder", "scores")
    }
    assert outer.steps["loop"].job["max_concurrency"] == 1


def test_items_may_be_paths(tmp_path: Path) -> None:
    step = {"command": "ls ${{inputs.of}}", "inputs": {"of": {"type": "uri_folder"}}}
    _, loop = spec_of(parallel_for(body=step, items=[{"of": Input(type="uri_folder", path=str(tmp_path))}]))
    assert [turn["of"].model_dump()["path"] for turn in loop.items.values()] == [str(tmp_path)]


def test_a_step_while_an_output_is_true_hands_its_outputs_on(tmp_path: Path) -> None:
    body: dict[str, Any] = {
        "command": "refine ${{inputs.draft}} ${{outputs.better}} ${{outputs.again}}",
        "inputs": {"draft": {"path": str(tmp_path)}},
        "outputs": {"better": Output(type="uri_folder"), "again": {"type": "boolean"}},
    }
    outer, loop = spec_of(do_while(body=body, mapping={"better": "draft"}, condition="again", max_iteration_count=4))
    assert (loop.type, loop.condition, loop.max_turns) == ("do_while", "again", 4)
    assert {name: carried.output for name, carried in loop.carried.items()} == {"draft": "better"}
    assert {name: output.type for name, output in outer.outputs.items()} == {
        "better": "uri_folder",
        "again": "uri_file",
    }


def test_a_step_of_v1_can_be_a_body() -> None:
    _, loop = spec_of(
        do_while(body=PythonScriptStep("poll.py", source_directory="src"), mapping={}, max_iteration_count=2)
    )
    assert loop.max_turns == 2


def test_a_body_that_describes_no_step_is_refused() -> None:
    with pytest.raises(InvalidInput, match="int describes no step"):
        parallel_for(body=3, items=[{}]).document()
