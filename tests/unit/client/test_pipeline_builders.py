"""v1's pipelines as Python objects: each is a pipeline document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parallelrun import (
    Environment,
    Input,
    Output,
    OutputFileDatasetConfig,
    ParallelRunConfig,
    ParallelRunStep,
    Pipeline,
    PipelineData,
    PipelineParameter,
    PythonScriptStep,
    StepSequence,
)
from parallelrun.azureml_shim.data import Dataset
from parallelrun.errors import InvalidInput
from parallelrun.job_file.reading import read_spec
from parallelrun_core.spec import PipelineSpec
from parallelrun_core.spec.later_inputs import StepInput
from tests.unit.tables.cutting import Cut, folder_with, values

TEXT_ONLY = {"infer_column_types": False}

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


def test_arguments_stand_for_the_input_of_their_name_or_steps() -> None:
    data = PipelineData("rows")
    writes = script("w", outputs=[data])
    files, table = data.as_input("files"), data.as_dataset().parse_parquet_files().as_named_input("table")
    by_name = script("c", data.as_input("rows"), inputs=[data.as_download("copied"), data.as_mount("rows")])
    by_steps = ParallelRunStep(
        "score", config(), inputs=[table], output="/o", side_inputs=[files], arguments=["--x", data]
    )
    unnamed = script("e", Input(path="/a"), inputs=[Input(path="/b", name="argument_0"), "/c"])
    spec = spec_of(Pipeline(steps=[writes, by_name, by_steps, unnamed]))

    assert "${{inputs.rows}}" in spec.steps["c"].job["command"]
    assert spec.steps["score"].job["program_arguments"] == "--x '${{inputs.files}}'"
    assert [*spec.steps["e"].job["inputs"]] == ["argument_0", "input_1", "argument_1"]


def test_outputs_may_have_a_destination_and_no_name() -> None:
    destinations: list[Any] = [("store", "{run-id}/{output-name}"), ("store",), ("store", None)]
    stored, other, last = (OutputFileDatasetConfig(destination=each) for each in destinations)
    with pytest.raises(InvalidInput, match="/name: tuple is no name"):
        untyped(OutputFileDatasetConfig)(("store", "a"))
    for unnamed in (untyped(PipelineData), stored.register_on_complete, PipelineData("a").as_dataset().register):
        for name in (None, ""):
            with pytest.raises(InvalidInput, match="/name: a name is required"):
                untyped(unnamed)(name)
    for destination in (object(), (None, "a"), ("", "a"), (), ("store", "a", "b"), (Path("/m"), "a"), ("store", b"a")):
        with pytest.raises(InvalidInput, match="datastore"):
            OutputFileDatasetConfig(destination=destination)
    for of_a_parameter in (
        text := f"out/{PipelineParameter('month', 'jan')}",
        Path(text),
        ("store", text),
        (text, "a"),
    ):
        with pytest.raises(InvalidInput, match=r"/destination: .*became a part of the text"):
            OutputFileDatasetConfig(destination=of_a_parameter)
    assert [OutputFileDatasetConfig("a", ("store", path)).path for path in (5, 0, Path("/b/"), "/")] == [
        f"azureml://datastores/store/paths/{path}" for path in ("5", "0", "b", "")
    ]
    called = OutputFileDatasetConfig("output_1")
    write = script("one", "--to", stored, called, other)
    read = script("two", "--from", stored.as_input(), other.as_input(), last.as_input())
    spec = spec_of(Pipeline(steps=[write, script("three", "--to", last), read]))

    outputs = spec.steps["one"].job["outputs"]
    assert {name: output.get("path") for name, output in outputs.items()} == {
        "output_0": "azureml://datastores/store/paths/__parallelrun_job_id__-one/output_0",
        "output_1": "",
        "output_2": "azureml://datastores/store/paths/__parallelrun_job_id__-one/output_2",
    }
    assert sources(spec, "two") == {
        "argument_1": ("one", "output_0"),
        "argument_2": ("one", "output_2"),
        "argument_3": ("three", "output_0"),
    }
    assert stored.name == other.name == last.name == "", "what users have made stays as it is"
    with pytest.raises(InvalidInput, match="an output 'output_1' already"):
        script("four", outputs=[called, PipelineData("output_1")])


def test_a_step_made_again_writes_its_data_in_place_of_the_first_one() -> None:
    data = PipelineData("data")
    first, second = script("first", outputs=[data]), script("second", outputs=[data])
    with pytest.raises(InvalidInput, match="/inputs"):
        ParallelRunStep("refused", config(), inputs=[], output=data)
    assert data.writer is second
    assert list(spec_of(Pipeline(steps=[script("read", "--from", data, inputs=[data])])).steps) == ["second", "read"]
    with pytest.raises(InvalidInput, match="second writes what another step writes: data"):
        Pipeline(steps=[first, second]).document()


def untyped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as scripts call it that no checker of types has seen."""
    return function


SETTINGS_THAT_NOTHING_HAS: dict[str, Callable[[], object]] = {
    "is_directry": lambda: untyped(PipelineData)("a", is_directry=False),
    "descripton": lambda: untyped(OutputFileDatasetConfig("a").register_on_complete)("b", descripton="c"),
    "seperator": lambda: untyped(PipelineData("a").as_dataset().parse_delimited_files)(seperator=";"),
    "allow_resue": lambda: script("a", allow_resue=False),
    "default_datstore": lambda: untyped(Pipeline)(steps=[], default_datstore="a"),
}


@pytest.mark.parametrize("name", SETTINGS_THAT_NOTHING_HAS)
def test_a_misspelt_setting_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        SETTINGS_THAT_NOTHING_HAS[name]()


SETTINGS_OF_AZURE_ALONE: dict[str, Callable[[], object]] = {
    "/training_output": lambda: PipelineData("a", training_output=object()),
    "/source": lambda: OutputFileDatasetConfig("a", source="/tmp/made"),
    "/partition_format": lambda: OutputFileDatasetConfig("a", partition_format="{day}/*.csv"),
    "/source_globs": lambda: OutputFileDatasetConfig("a").as_upload(source_globs=["*.csv"]),
    "/path_glob": lambda: OutputFileDatasetConfig("a").read_delimited_files(path_glob="*.csv"),
    "/set_column_types": lambda: OutputFileDatasetConfig("a").read_parquet_files(set_column_types={"a": "int"}),
    "/header": lambda: OutputFileDatasetConfig("a").read_delimited_files(header="yes"),
    "/destination": lambda: OutputFileDatasetConfig("a", destination=5),
    "/runconfig_pipeline_params": lambda: script("a", runconfig_pipeline_params={"b": PipelineParameter("b", 1)}),
}


@pytest.mark.parametrize("pointer", SETTINGS_OF_AZURE_ALONE)
def test_a_setting_that_would_change_the_result_in_azure_is_refused_by_its_name(pointer: str) -> None:
    with pytest.raises(InvalidInput) as told:
        SETTINGS_OF_AZURE_ALONE[pointer]()
    assert [problem.pointer for problem in told.value.problems] == [pointer]
    assert told.value.problems[0].hint


def test_settings_of_azure_that_change_nothing_are_accepted() -> None:
    data = PipelineData("a", "store", None, "upload", "/tmp/a", True, "t", pipeline_output_name="b")
    assert data.fields("a") == {"type": "uri_folder"}
    assert PipelineData("a", is_directory=False).fields("a") == {"type": "uri_file"}
    assert data.as_mount("rows").name == "rows"
    assert data.as_download("rows", path_on_compute="/tmp/b", overwrite=True).mode == "download"
    assert data.as_input("rows").as_mount("/tmp/b").mode == "ro_mount"
    table = OutputFileDatasetConfig("a").read_parquet_files()
    assert table.as_mount().mode is None
    assert table.as_input().as_download().mode == "download"
    for method in ("as_download", "as_direct", "as_named_input"):
        with pytest.raises(InvalidInput, match="call as_input"):
            getattr(table, method)("b")
    prepare = script("a", "--to", data, outputs=[data], version="2", hash_paths=["src"])
    assert prepare.document()["outputs"] == {"a": {"type": "uri_folder"}}


def test_tables_are_read_with_the_words_of_azure() -> None:
    table = OutputFileDatasetConfig("table").read_delimited_files(True, "\t", False, "{day}/*.tsv")
    assert table.transformations == [
        {"read_delimited": {**TEXT_ONLY, "include_path_column": True, "delimiter": "\t", "header": "no_header"}},
        {"extract_columns_from_partition_format": "{day}/*.tsv"},
    ]
    files, columns = PipelineData("table").as_dataset(), ["a"]
    rows = files.parse_delimited_files(quoted_line_breaks=True)
    read = {"read_delimited": {**TEXT_ONLY, "support_multi_line": True, "file_extension": ".csv"}}
    first = rows.keep_columns(columns).take(5)
    columns.append("b")
    assert first.transformations == [read, {"keep_columns": ["a"]}, {"take": 5}]
    assert rows.transformations == [read], "what it was made from stays"
    for separator, given, options in (("\t", "", {"file_extension": ".tsv"}), (";", "", {}), (";", None, {})):
        table_files = files.parse_delimited_files(separator=separator, file_extension=given)
        assert table_files.transformations == [{"read_delimited": {**TEXT_ONLY, "delimiter": separator, **options}}]
    assert files.parse_parquet_files().transformations == [{"read_parquet": {"file_extension": ".parquet"}}]
    folder = folder_with({"north/a.csv": "zip\n00501\n"})
    by_path = "{store}/a.csv"
    in_folders = OutputFileDatasetConfig("table").read_delimited_files(partition_format=by_path)
    inferred = Dataset.Tabular.from_delimited_files("table", partition_format=by_path)
    for files_by_path, zip_code in ((files.parse_delimited_files(partition_format=by_path), "00501"),
                                    (in_folders, "00501"), (inferred, 501)):  # fmt: skip
        for keys in ([], ["store"]):
            frame = Cut(folder, files_by_path.transformations or [], keys=keys).frame
            assert (list(frame.columns), values(frame)) == (["zip", "store"], [(zip_code, "north")])
    one_file = PipelineData("table", is_directory=False).as_dataset()
    assert one_file.parse_parquet_files().transformations == ["read_parquet"]
    for option in ({"quoted_line_breaks": 2}, {"separator": 5}, {"include_path": 2}):
        with pytest.raises(InvalidInput, match=f"^/{next(iter(option))}: "):
            untyped(files.parse_delimited_files)(**option)
    for method, argument, value in (("take", "count", -1), ("take_sample", "probability", 3)):
        with pytest.raises(InvalidInput, match=f"^/{argument}: "):
            getattr(rows, method)(value)
    for refused in (lambda: files.take(2), lambda: untyped(rows.keep_columns)({"a"})):
        with pytest.raises(InvalidInput):
            refused()


def test_a_pipeline_may_name_the_folder_of_its_steps_and_leave_out_what_they_need() -> None:
    data = PipelineData("data")
    write = PythonScriptStep("write.py", outputs=[data])
    read = PythonScriptStep("read.py", inputs=[data], source_directory="own")
    score = ParallelRunStep("score", config(source_directory=None), [data], output="out")
    steps = Pipeline(steps=[read, score], default_source_directory="shared").document()["jobs"]
    codes = {name: step.get("code") for name, step in steps.items()}
    assert codes == {"write_py": "shared", "read_py": "own", "score": None}
    assert steps["score"]["parallel_run_config"]["source_directory"] == "shared"
    with pytest.raises(InvalidInput, match="no step of the pipeline writes data"):
        Pipeline(steps=[read], resolve_closure=False).document()
    assert write.wires.outputs == {data: "data"}


def test_what_is_not_reused_says_so() -> None:
    step = ParallelRunStep("score", config(), ["raw"], output="out", allow_reuse=False)
    spec = spec_of(Pipeline(steps=[step, script("one", allow_reuse=False), script("two")]))
    assert [spec.steps[name].is_deterministic for name in ("score", "one", "two")] == [False, False, True]


def test_tables_are_read_from_what_a_step_has_written() -> None:
    table = PipelineData("table").as_dataset().parse_delimited_files(separator=";").register("kept")
    scores = PipelineData("scores").as_dataset()
    script("write", "--to", table, outputs=[table])
    rows = table.as_named_input("rows")
    score = ParallelRunStep("score", config(), [rows], scores, arguments=["--rows", rows, "--all", table])
    report = script("report", "--in", scores.as_named_input("one").as_mount("/tmp/x"), "--again", scores.as_download())
    pipeline = Pipeline(steps=[score, report])
    assert pipeline.validate() == []
    spec = spec_of(pipeline)

    assert spec.steps["write"].job["outputs"]["table"]["asset"] == {"name": "kept"}
    steps = ({"read_delimited": {**TEXT_ONLY, "delimiter": ";"}},)
    assert spec.steps["score"].inputs_from["rows"].transformations == steps
    assert sources(spec, "score") == {"rows": ("write", "table")}
    assert spec.steps["score"].job["program_arguments"] == "--rows '${{inputs.rows}}' --all '${{inputs.rows}}'"
    assert spec.steps["score"].job["append_row_to"] == "scores"
    assert sources(spec, "report") == {"one": ("score", "scores"), "scores": ("score", "scores")}
    assert [spec.steps["report"].inputs_from[name].mode for name in ("one", "scores")] == ["ro_mount", "download"]


def test_data_without_a_writer_and_steps_without_their_pipeline_are_refused() -> None:
    data = PipelineData("data")
    step = ParallelRunStep("score", config(), [data], output="out")
    with pytest.raises(InvalidInput, match="submit a Pipeline with both steps"):
        read_spec(step)
    with pytest.raises(InvalidInput, match="no step of the pipeline writes data"):
        read_spec(Pipeline(steps=[step]))
    with pytest.raises(InvalidInput, match="list it in inputs or outputs"):
        read_spec(Pipeline(steps=[script("one", data)]))
    with pytest.raises(InvalidInput, match=r"an input 'data' already .*as_input\(name\)"):
        script("two", inputs=[data, PipelineData("data")])
    with pytest.raises(InvalidInput, match="an input 'data' already"):
        ParallelRunStep("two", config(), [data.as_download(), data.as_dataset().parse_parquet_files()], "out")
    read = OutputFileDatasetConfig("table").read_parquet_files().as_input("x")
    for output in (5, read):
        with pytest.raises(InvalidInput, match=r"/outputs: .* is no output of a step"):
            script("two", outputs=[output])
        with pytest.raises(InvalidInput, match=r"/output: .* is no output of a step"):
            untyped(ParallelRunStep)("two", config(), ["a"], output)
    for parameter in (PipelineParameter("a", 1), None):
        with pytest.raises(InvalidInput, match=r"/inputs/0: .* is no input"):
            untyped(script)("two", inputs=[parameter])
    parameter = PipelineParameter("a", Input(path="a"))
    with pytest.raises(InvalidInput, match=r"/inputs/0: .*became a part of the text"):
        script("two", inputs=[Input(path=f"/d/{parameter}")])
    for argument in (
        parameter, None, b"a", ["a"], Environment("e"), f"--in={data}", f"--a={parameter}", Output(path=f"{data}"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="/arguments/1: "):
            script("two", "a", argument)
    with pytest.raises(InvalidInput, match="/inputs/data: a script gets no table"):
        script("two", inputs=[data.as_dataset().parse_parquet_files()])
    with pytest.raises(InvalidInput, match="/step: list is no step"):
        untyped(script("two").run_after)([script("one")])
    for missing, remedy in (("parse_parquet_files", "as_dataset"), ("random_split", "parse_delim"), ("a", "docs")):
        with pytest.raises(AttributeError, match=rf"ParallelRun has no PipelineData\.{missing} \(.*{remedy}"):
            getattr(data, missing)


def test_what_is_registered_on_completion_names_its_asset() -> None:
    for destination in (None, ("store", "raw"), ("store", "raw/{run-id}")):
        raw = OutputFileDatasetConfig(name="raw", destination=destination).read_delimited_files()
        raw = raw.register_on_complete(name="kept", description="for people", tags={"a": "b"}).drop_columns(["a"])
        rows = OutputFileDatasetConfig("rows", destination).as_upload(overwrite=True).register_on_complete("scored")
        script("get", "--to", raw.as_upload())
        score = ParallelRunStep("score", config(), [raw.as_input(name="lines")], rows)
        spec = spec_of(Pipeline(steps=[score]))

        assert spec.steps["get"].job["outputs"]["raw"]["asset"] == {"name": "kept"}
        assert spec.steps["score"].job["outputs"]["rows"]["asset"] == {"name": "scored"}
        steps = ({"read_delimited": TEXT_ONLY}, {"drop_columns": ["a"]})
        assert spec.steps["score"].inputs_from["lines"].transformations == steps
