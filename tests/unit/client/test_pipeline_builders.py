"""v1's pipelines as Python objects: each is a pipeline document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parallelrun import (
    Environment,
    Input,
    OutputFileDatasetConfig,
    ParallelRunConfig,
    ParallelRunStep,
    Pipeline,
    PipelineData,
    PipelineParameter,
    PythonScriptStep,
    StepSequence,
)
from parallelrun.errors import InvalidInput
from parallelrun.job_file.reading import read_spec
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.spec.later_inputs import StepInput

pytestmark = pytest.mark.usefixtures("_here")


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(**changes: Any) -> ParallelRunConfig:
    given: dict[str, Any] = {
        "environment": Environment("e"), "entry_script": "score.py", "source_directory": "src", "error_threshold": -1,
        "output_action": "append_row", "compute_target": "c", "node_count": 2,
    }  # fmt: skip
    return ParallelRunConfig(**(given | changes))


def script(name: str, *arguments: Any, **given: Any) -> PythonScriptStep:
    return PythonScriptStep(f"{name}.py", name=name, arguments=arguments, source_directory="src", **given)


def spec_of(pipeline: Pipeline) -> PipelineSpec:
    spec = read_spec(pipeline).pipeline
    assert spec is not None
    return spec


def sources(spec: PipelineSpec, step: str) -> dict[str, tuple[str, str]]:
    given = spec.steps[step].inputs_from.items()
    return {name: (each.step, each.output) for name, each in given if isinstance(each, StepInput)}


def test_steps_are_found_and_ordered_by_the_data_that_they_need(tmp_path: Path) -> None:
    raw, prepared, scores = Input(path="raw", name="raw"), OutputFileDatasetConfig("prepared"), PipelineData("scores")
    report = script("report", "--in", scores, inputs=[scores])
    score = ParallelRunStep("score-all", config(), [prepared.as_input("files").as_download()], output=scores)
    prepare = script("prepare", "--raw", raw, "--to", prepared.as_upload(), "it is", inputs=[raw])
    spec = spec_of(Pipeline(None, steps=[report]))

    assert spec.order() == ["prepare", "score-all", "report"]
    assert spec.steps["prepare"].job["command"] == (
        "python prepare.py --raw ${{inputs.raw}} --to ${{outputs.prepared}} 'it is'"
    )
    assert spec.steps["prepare"].job["inputs"] == {"raw": {"path": f"{tmp_path}/raw"}}
    assert sources(spec, "score-all") == {"files": ("prepare", "prepared")}
    assert spec.steps["score-all"].inputs_from["files"].mode == "download"
    assert spec.steps["score-all"].job["append_row_to"] == "scores"
    assert sources(spec, "report") == {"scores": ("score-all", "scores")}
    assert (score.name, prepare.name) == ("score-all", "prepare")


def test_parameters_get_their_values_at_submission() -> None:
    limit, size = PipelineParameter("limit", 5), PipelineParameter("size", "10")
    step = ParallelRunStep("score", config(mini_batch_size=size), ["raw"], output="out", arguments=["--limit", limit])
    other = script("other", "--limit", limit, params={"size": size})
    pipeline = Pipeline(steps=[step, other])

    assert pipeline.parameters() == {"size": "10", "limit": 5}
    given = pipeline.submitted_with({"limit": 7}, experiment_name="trial", regenerate_outputs=True)
    spec = spec_of(given)
    assert spec.steps["score"].job["program_arguments"] == "--limit 7"
    assert spec.steps["score"].job["mini_batch_size"] == 10
    assert spec.steps["other"].job["environment_variables"] == {"AML_PARAMETER_size": "10"}
    assert (spec.experiment, spec.force_rerun, spec.continue_on_step_failure) == ("trial", True, False)
    assert pipeline.parameters()["limit"] == 5, "what it was made from stays"
    with pytest.raises(InvalidInput, match="it has: size, limit"):
        pipeline.submitted_with({"limits": 7})


def test_a_sequence_orders_steps_that_need_no_data() -> None:
    one, two, three, four = (script(name) for name in ("one", "two", "three", "four"))
    spec = spec_of(Pipeline(steps=StepSequence([one, [two, three], four]).steps))

    assert [sorted(spec.steps[name].after) for name in ("one", "two", "three", "four")] == [
        [], ["one"], ["one"], ["three", "two"],
    ]  # fmt: skip


def test_names_are_made_fit_and_kept_apart() -> None:
    spec = spec_of(Pipeline(steps=[script("a b!"), script("a_b_"), script("A b!")]))
    assert list(spec.steps) == ["a_b_", "a_b__2", "A_b__3"]


def test_outputs_may_have_a_destination_and_no_name() -> None:
    stored = OutputFileDatasetConfig(destination=("store", "runs/{output-name}"))
    spec = spec_of(Pipeline(steps=[script("one", "--to", stored), script("two", "--from", stored.as_input())]))

    assert spec.steps["one"].job["outputs"]["output_0"]["path"] == "azureml://datastores/store/paths/runs/output"
    assert sources(spec, "two") == {"output_0": ("one", "output_0")}


def test_what_is_not_reused_says_so() -> None:
    step = ParallelRunStep("score", config(), ["raw"], output="out", allow_reuse=False)
    spec = spec_of(Pipeline(steps=[step, script("one", allow_reuse=False), script("two")]))
    assert [spec.steps[name].is_deterministic for name in ("score", "one", "two")] == [False, False, True]


def test_tables_are_read_from_what_a_step_has_written() -> None:
    table = PipelineData("table")
    write = script("write", "--to", table, outputs=[table])
    summed = config(output_action="summary_only")
    read = ParallelRunStep("read", summed, [table.parse_delimited_files(delimiter=";").as_named_input("rows")])
    given = spec_of(Pipeline(steps=[write, read])).steps["read"].inputs_from["rows"]
    assert given.transformations == ({"read_delimited": {"delimiter": ";"}},)


def test_data_without_a_writer_and_steps_without_their_pipeline_are_refused() -> None:
    data = PipelineData("data")
    step = ParallelRunStep("score", config(), [data], output="out")
    with pytest.raises(InvalidInput, match="submit a Pipeline with both steps"):
        read_spec(step)
    with pytest.raises(InvalidInput, match="no step of the pipeline writes data"):
        read_spec(Pipeline(steps=[step]))
    with pytest.raises(InvalidInput, match="list it in inputs or outputs"):
        read_spec(Pipeline(steps=[script("one", data)]))
    with pytest.raises(InvalidInput, match="an input 'data' already"):
        script("two", inputs=[data, PipelineData("data")])


def test_what_is_registered_on_completion_names_its_asset() -> None:
    data = OutputFileDatasetConfig("prepared").register_on_complete("kept")
    assert data.fields()["asset"] == {"name": "kept"}
