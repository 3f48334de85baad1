"""A job spec is checked whole: each wrong field with its place, why, and what was probably meant."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.arguments import engine_arguments, input_arguments
from parallelrun_core.spec.data_defaults import AZURE, OWN, with_data_defaults
from parallelrun_core.spec.fields import MiniBatchSize, size_meant

GOOD: dict[str, Any] = {"entry_script": "score.py", "inputs": "/in"}


def problems(document: object) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        JobSpec.parse(document)
    assert caught.value.problems
    return {problem.pointer: str(problem) for problem in caught.value.problems}


def test_two_fields_are_enough_and_the_defaults_are_the_references() -> None:
    spec = JobSpec.parse(GOOD)
    assert spec.data_paths() == ["/in"]
    assert spec.input_data == ("data",)
    assert spec.argv() == []
    assert (spec.size.files, spec.size.bytes, spec.run_invocation_timeout, spec.run_max_try) == (10, 1 << 20, 60, 3)
    assert (spec.error_threshold, spec.mini_batch_error_threshold, spec.allowed_failed_percent) == (-1, -1, 100)
    assert (spec.append_row_file_name, spec.writes_rows) == ("parallel_run_step.txt", True)


@pytest.mark.parametrize(
    "field, value, why",
    [
        ("resources", {"instance_count": 2}, "unknown field (`instance_count: N` beside"),
        ("retry_settings", {"max_retries": 2}, "unknown field (`run_max_try` is"),
        ("task", {"entry_script": "a.py"}, "unknown field (its fields are the job's own"),
        ("entry_script", "", "required (or `command`, a shell command)"),
        ("entry_script", None, "must be a string"),
        ("entry_script", 7, "must be a string, not 7"),
        ("inputs", {}, "at least 1"),
        ("inputs", [], "must be a mapping"),
        ("inputs", {"a b": "/x"}, "not a valid input name"),
        ("inputs", {"1a": "/x"}, "not a valid input name"),
        ("inputs", {"": "/x"}, "not a valid input name"),
        ("mini_batch_size", 0, "greater than or equal to 1"),
        ("mini_batch_size", -1, "greater than or equal to 1"),
        ("mini_batch_size", 1.5, "must be a whole number, or a string such as"),
        ("mini_batch_size", True, "must be a whole number, or a string such as"),
        ("mini_batch_size", "0", "greater than or equal to 1"),
        ("mini_batch_size", "-1", "must be a whole number, or a string such as"),
        ("mini_batch_size", "1.5kb", "not '1.5kb'"),
        ("mini_batch_size", "10 kb", "did you mean '10kb'?"),
        ("mini_batch_size", "1tb", "must be a whole number, or a string such as"),
        ("mini_batch_size", "1kbkb", "must be a whole number, or a string such as"),
        ("mini_batch_size", "rows:1kb", "must be a whole number, or a string such as"),
        ("mini_batch_size", "rows:0", "greater than or equal to 1"),
        ("mini_batch_size", "9" * 30, "less than or equal"),
        ("mini_batch_size", "many", "must be a whole number, or a string such as"),
        ("mini_batch_size", 10**15, "less than or equal"),
        ("run_max_try", 0, "greater than or equal to 1"),
        ("run_max_try", "many", "must be a whole number, not 'many'"),
        ("run_max_try", 1.5, "must be a whole number, not 1.5"),
        ("run_invocation_timeout", "1 minute", "must be a number"),
        ("look_ahead", "maybe", "must be true or false"),
        ("tags", ["a"], "must be a mapping"),
        ("environment", "x", "must be a mapping"),
        ("run_invocation_timeout", 0, "greater than 0"),
        ("run_invocation_timeout", -5, "greater than 0"),
        ("run_invocation_timeout", float("nan"), "not nan"),
        ("run_invocation_timeout", float("inf"), "less than"),
        ("error_threshold", -2, "greater than or equal to -1"),
        ("mini_batch_error_threshold", -2, "greater than or equal to -1"),
        ("allowed_failed_percent", 101, "less than or equal to 100"),
        ("allowed_failed_percent", -0.1, "greater than or equal to 0"),
        ("allowed_failed_percent", float("nan"), "not nan"),
        ("output_action", "append", "append_row"),
        ("logging_level", "LOUD", "DEBUG"),
        ("instance_count", 0, "greater than or equal to 1"),
        ("name", "", "beginning with a letter or a digit"),
        ("name", "-x", "1 to 128"),
        ("name", "job\n", "1 to 128"),
        ("name", "a/b", "1 to 128"),
        ("append_row_file_name", "../x", "plain file name"),
        ("append_row_file_name", "a/b", "plain file name"),
        ("append_row_file_name", "..", "plain file name"),
        ("append_row_file_name", ".", "plain file name"),
        ("append_row_file_name", "a\0b", "plain file name"),
        ("append_row_file_name", "a\nb", "plain file name"),
        ("append_row_file_name", "", "at least 1"),
        ("append_row_file_name", "a" * 256, "at most 255"),
        ("append_row_file_name", "é" * 200, "255"),
        ("environment_variables", {"A=B": "x"}, "not a valid name"),
        ("environment_variables", {"": "x"}, "not a valid name"),
        ("environment_variables", {"A": "x\0y"}, "NUL"),
        ("program_arguments", "--x 'open", "quotation"),
        ("program_arguments", "--a 1 \\ --error_threshold 5", "backslash before a blank"),
        ("program_arguments", "--a 1 \\ \n--error_threshold 5", "backslash before a blank"),
        ("program_arguments", "${{inputs.nothing}}", "nothing"),
        ("input_data", "nothing", "nothing"),
        ("input_data", ["data", "data"], "twice"),
        ("code", "/a\0b", "NUL"),
        ("output", "/a\0b", "NUL"),
        ("entry_script", "a\0b.py", "NUL"),
        ("code", "azureml:some_code:1", "can't be read there"),
        ("program_arguments", "${{outputs.nothing}}", "not one of the outputs (there is none)"),
        ("program_arguments", "${{parent.inputs.x}}", "neither"),
        ("partition_keys", "store", "must be a list, not 'store'"),
        ("partition_keys", ["a", "a"], "distinct"),
        ("partition_keys", [""], "empty"),
        ("inputs", {"a": "/a", "A": "/b"}, "twice"),
        ("outputs", {"a b": {}}, "not a valid output name"),
        ("append_row_to", "nothing", "not one of the outputs (there is none)"),
        ("append_row_separator", "", "at least 1"),
        ("append_row_separator", "ab", "at most 1"),
        ("append_row_separator", '"', "quote"),
        ("task_overhead_timeout", 0, "greater than 0"),
        ("resource_monitor_interval", -1, "greater than or equal to 0"),
        ("profiling_module", "yappi", "cProfile"),
        ("nice", 20, "less than or equal to 19"),
        ("rank_mini_batch_count", -1, "greater than or equal to 0"),
        ("resume_from", "x" * 129, "at most 128"),
    ],
)
def test_a_bad_value_is_told_with_its_place_and_reason(field: str, value: object, why: str) -> None:
    found = problems({**GOOD, field: value})
    assert list(found) == [f"/{field}"]
    assert why.lower() in found[f"/{field}"].lower()
    assert not re.search(
        r"\b(be a valid|tuple|dictionary|integer|boolean|instance|parse|input should)\b", found[f"/{field}"]
    )


@pytest.mark.parametrize(
    "text, meant",
    [
        ("10 kilobytes", "10kb"), ("10 KB", "10kb"), ("5 MiB", "5mb"), ("2g", "2gb"), ("1.5mb", "1536kb"),
        ("0.5 GB", "512mb"), ("500 rows", "rows:500"), ("20 files", "20"), ("1024 bytes", "1024"), ("Auto", "auto"),
        ("1.5kb", ""), ("many", ""), ("10 apples", ""), ("-5kb", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_size_that_somebody_may_have_meant_is_suggested(text: str, meant: str) -> None:
    assert size_meant(text) == meant
    assert MiniBatchSize.parse(meant or None) is not None


@pytest.mark.parametrize("path", ["", "x" * 5000, "/a\0b", 7, None])
def test_a_bad_path_of_an_input_is_told_with_its_place(path: object) -> None:
    assert list(problems({**GOOD, "inputs": {"one": {"path": path}}})) == ["/inputs/one/path"]


def test_all_that_is_wrong_is_told_at_once() -> None:
    found = problems({"mini_batch_size": 0, "run_max_try": "x", "inputs": {"a": {"pth": "/x"}}, "name": "?"})
    assert set(found) == {
        "/entry_script", "/mini_batch_size", "/run_max_try", "/inputs/a/path", "/inputs/a/pth", "/name",
    }  # fmt: skip
    assert "required" in found["/entry_script"]
    assert "required" in found["/inputs/a/path"]


@pytest.mark.parametrize(
    "field, meant",
    [
        ("mini_batchsize", "mini_batch_size"),
        ("entryscript", "entry_script"),
        ("errror_threshold", "error_threshold"),
        ("output_actions", "output_action"),
    ],
)
def test_a_slip_in_a_name_is_told_with_what_was_meant(field: str, meant: str) -> None:
    assert f"did you mean {meant!r}?" in problems({**GOOD, field: 1})[f"/{field}"]
    assert "did you mean" not in problems({**GOOD, "zzzzzzzz": 1})["/zzzzzzzz"]


def test_a_slip_inside_an_input_is_told_with_what_was_meant() -> None:
    found = problems({**GOOD, "inputs": {"a": {"path": "/x", "typ": "uri_file"}}})
    assert "did you mean 'type'?" in found["/inputs/a/typ"]


@pytest.mark.parametrize("document", [None, [], "text", 7, b"x"])
def test_what_is_no_mapping_is_no_job_spec(document: object) -> None:
    assert "mapping" in problems(document)[""]


@pytest.mark.parametrize("document", [{1: 2}, {None: "x"}, {("a",): 1}])
def test_keys_that_are_no_texts_are_told(document: dict[object, object]) -> None:
    given: dict[object, object] = {"entry_script": "score.py", "inputs": "/in"}
    assert problems(given | document)


# Inputs and arguments


@pytest.mark.parametrize(
    "given, number, unit",
    [(5, 5, "plain"), ("5", 5, "plain"), ("2KB", 2048, "bytes"), ("3mb", 3 << 20, "bytes"), ("rows:7", 7, "rows")],
)
def test_sizes_are_numbers_bytes_or_rows(given: int | str, number: int, unit: str) -> None:
    size = JobSpec.parse({**GOOD, "mini_batch_size": given}).size
    assert (size.number, size.unit) == (number, unit)


def test_keys_and_a_size_exclude_each_other() -> None:
    both = {**GOOD, "partition_keys": ["store"]}
    assert JobSpec.parse(both).partition_keys == ("store",)
    assert "mini_batch_size" in problems({**both, "mini_batch_size": 5})["/partition_keys"]


def test_mini_batches_without_data_need_no_input() -> None:
    assert JobSpec.parse({"entry_script": "a.py", "rank_mini_batch_count": 3}).data_paths() == []
    assert "at least 1" in problems({"entry_script": "a.py"})["/inputs"]


@pytest.mark.parametrize("path", ["azureml:a:1", "azureml://datastores/d", "ftp://h/x", "hdfs://h/x"])
def test_data_that_are_in_another_kind_of_place_are_refused_with_what_to_do(path: str) -> None:
    assert "copy the data" in problems({**GOOD, "inputs": {"a": path}})["/inputs/a/path"]


@pytest.mark.parametrize("url", ["azureml:a:1", "git+https://h/r", "hdfs://h/x"])
@pytest.mark.parametrize(
    "pointer, field",
    [
        ("/output", {"output": "{}"}),
        ("/outputs/a/path", {"outputs": {"a": "{}"}}),
        ("/outputs/a/path", {"outputs": {"a": {"type": "uri_file", "path": "{}"}}}),
        ("/inputs/a/path", {"inputs": {"a": {"path": "{}", "type": "mltable"}}}),
    ],
)
def test_a_url_is_not_taken_for_the_name_of_a_folder(url: str, pointer: str, field: dict[str, Any]) -> None:
    document = {**GOOD, **json.loads(json.dumps(field).replace("{}", url))}
    told = problems(document)[pointer]
    assert url in told
    assert "not supported yet" in told
    assert "azureml://datastores/" in told, "what is supported"


@pytest.mark.parametrize("url", ["s3://b/c", "https://h/x", "azureml://datastores/d/paths/p", "azureml:a:1"])
def test_code_is_in_a_folder_whatever_stores_there_are(url: str) -> None:
    assert "give the path of a folder" in problems({**GOOD, "code": url})["/code"]


@pytest.mark.parametrize("form", ["/x/y", "file:/x/y", "file:///x/y", "azureml:/x/y"])
def test_a_local_path_may_be_spelled_as_azure_ml_does(form: str) -> None:
    fields = {"inputs": form, "code": form, "output": form, "outputs": {"a": form}}
    spec = JobSpec.parse({**GOOD, **fields}).relative_to(Path("/job"))
    assert [*spec.data_paths(), spec.code, spec.output, spec.outputs["a"].path] == ["/x/y"] * 4


@pytest.mark.parametrize("form", ["x/y", "file:x/y", "file:./x/y", "azureml:./x/y"])
def test_a_relative_path_may_be_spelled_so_too(form: str) -> None:
    assert JobSpec.parse({**GOOD, "inputs": form}).relative_to(Path("/job")).data_paths() == ["/job/x/y"]


@pytest.mark.parametrize("mode", ["eval_mount", "eval_download"])
def test_only_a_table_can_be_evaluated(mode: str) -> None:
    table = {"path": "/x", "type": "mltable", "mode": mode}
    assert JobSpec.parse({**GOOD, "inputs": {"a": table}}).data_paths() == ["/x"]
    assert "mltable" in problems({**GOOD, "inputs": {"a": {"path": "/x", "mode": mode}}})["/inputs/a"]


def test_literals_and_outputs_are_bound_in_the_arguments() -> None:
    spec = JobSpec.parse({
        **GOOD,
        "inputs": {"data": "/in", "Limit": 5, "deep": True, "word": {"value": "a b"}},
        "outputs": {"model": {}, "scores": {"type": "uri_file", "path": "/out/s.csv"}},
        "program_arguments":
            "--x ${{INPUTS.limit}} ${{inputs.deep}} ${{inputs.word}} ${{outputs.model}} ${{outputs.SCORES}}",
    })  # fmt: skip
    assert spec.input_data == ("data",)
    assert spec.argv({"model": "/job/outputs/model"}) == ["--x", "5", "True", "a b", "/job/outputs/model", "/out/s.csv"]


def test_the_engines_own_arguments_are_those_of_the_reference() -> None:
    spec = JobSpec.parse({**GOOD, "partition_keys": ["b", "a"], "mini_batch_error_threshold": 3, "run_max_try": 2})
    argv = engine_arguments(spec, "/out")
    options = dict(zip(argv[::2], argv[1::2], strict=True))
    assert options["--scoring_module_name"] == "score.py"
    assert options["--partition_keys"] == '["b", "a"]'
    assert (options["--run_invocation_timeout"], options["--run_max_try"], options["--output"]) == ("60", "2", "/out")
    assert options["--allowed_failed_count"] == "3"
    assert "--allowed_failed_percent" not in options
    assert input_arguments(spec) == ["--input_fds_0", "data"]


def test_rows_go_to_one_of_the_outputs(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path, "job_x")
    outputs = {"a": None, "b": {"type": "uri_file", "path": "/o/b.csv"}}
    files = [
        folder.output_file(JobSpec.parse({**GOOD, "outputs": outputs, **extra}))
        for extra in ({}, {"append_row_to": "A"}, {"append_row_to": "${{outputs.b}}"}, {"output": "/elsewhere"})
    ]
    assert files == [
        f"{folder.outputs}/parallel_run_step.txt", f"{folder.outputs}/a/parallel_run_step.txt",
        "/o/b.csv", "/elsewhere/parallel_run_step.txt",
    ]  # fmt: skip


def test_what_was_submitted_before_there_were_these_fields_still_loads() -> None:
    old = {"entry_script": "a.py", "inputs": {"data": {"path": "/in", "type": "uri_folder", "mode": "ro_mount"}}}
    spec = JobRecord(job_id="job_x", submitted=1.0, code="c", spec={**old, "mini_batch_size": 10}).job_spec()
    assert spec.size.files == 10


def test_several_inputs_need_a_choice() -> None:
    both = {**GOOD, "inputs": {"a": "/a", "b": {"path": "/b", "type": "uri_file"}}}
    assert "input_data" in "".join(problems(both).values())
    assert JobSpec.parse({**both, "input_data": ["b", "a"]}).data_paths() == ["/b", "/a"]
    assert JobSpec.parse({**both, "input_data": "a"}).data_paths() == ["/a"]
    assert JobSpec.parse({**both, "input_data": "${{inputs.b}}"}).data_paths() == ["/b"]


@pytest.mark.parametrize(
    "text, argv",
    [
        ("", []),
        ("  a   b ", ["a", "b"]),
        ("--x 'a b' \"c d\" e\\ f", ["--x", "a b", "c d", "e f"]),
        ("--json '{\"a\": [1, 2]}'", ["--json", '{"a": [1, 2]}']),
        ("--in ${{inputs.data}}", ["--in", "/in put"]),
        ("--in=${{ inputs.data }}/x", ["--in=/in put/x"]),
        ("'${{inputs.data}}'", ["/in put"]),
        ("${{inputs.data}}${{inputs.model}}", ["/in put/m'o\"d$el"]),
        ("${{  inputs.model  }} b", ["/m'o\"d$el", "b"]),
        ("''", [""]),
        ("a # b", ["a", "#", "b"]),
        ("$HOME `x` *", ["$HOME", "`x`", "*"]),
        ("'line\nbreak'", ["line\nbreak"]),
        ("--a 1 \\\n  --b 2 \\\r\n--c 3 \\\n", ["--a", "1", "--b", "2", "--c", "3"]),
        ('lo\\\nng "it\'s lo\\\nng" \'a\\\nb\' "a\\\\\nb"', ["long", "it's long", "a\\\nb", "a\\\nb"]),
        ("' --x' \" --y\" \\ z", [" --x", " --y", " z"]),
    ],
)
def test_arguments_are_split_as_a_shell_would_and_bound(text: str, argv: list[str]) -> None:
    spec = JobSpec.parse({
        **GOOD, "inputs": {"data": "/in put", "model": "/m'o\"d$el"}, "input_data": "data", "program_arguments": text,
    })  # fmt: skip
    assert spec.argv() == argv


@given(
    words=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), max_size=5)
)
@settings(deadline=None)
def test_what_was_quoted_for_a_shell_comes_back(words: list[str]) -> None:
    assert JobSpec.parse({**GOOD, "program_arguments": shlex.join(words)}).argv() == words


def test_a_binding_inside_a_path_is_not_expanded_again() -> None:
    spec = JobSpec.parse({
        **GOOD, "inputs": {"a": "/${{inputs.b}}", "b": "/x"}, "input_data": "a",
        "program_arguments": "${{inputs.a}} ${{inputs.b}}",
    })  # fmt: skip
    assert spec.argv() == ["/${{inputs.b}}", "/x"]


def test_relative_paths_are_those_of_the_job_file(tmp_path: Path) -> None:
    spec = JobSpec.parse({
        **GOOD, "code": "src", "inputs": {"a": "in/*.txt", "b": "/abs"}, "input_data": "a", "output": "",
    })  # fmt: skip
    moved = spec.relative_to(tmp_path)
    assert moved.code == f"{tmp_path}/src"
    assert {name: given.path for name, given in moved.input_paths()} == {"a": f"{tmp_path}/in/*.txt", "b": "/abs"}
    assert moved.output == ""


def test_the_home_of_somebody_who_is_not_there_is_told_as_a_wrong_path(tmp_path: Path) -> None:
    spec = JobSpec.parse({**GOOD, "code": "~nobody-of-this-name/x"})
    with pytest.raises(InvalidInput):
        spec.relative_to(tmp_path)


# Documents

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(fields=st.dictionaries(st.sampled_from(sorted(JobSpec.model_fields)), plain, max_size=6))
@settings(deadline=None, max_examples=200)
def test_any_values_give_a_spec_or_problems_and_a_spec_survives_the_folder(fields: dict[str, Any]) -> None:
    try:
        spec = JobSpec.parse({**GOOD, **fields})
    except InvalidInput as error:
        found: tuple[Problem, ...] | None = error.problems
    else:
        found = None
    if found is not None:
        assert found
        assert all(problem.pointer == "" or problem.pointer.startswith("/") for problem in found)
        return
    raw = msgspec.json.encode(spec.model_dump(mode="json"))
    assert JobSpec.model_validate(msgspec.json.decode(raw)) == spec


def test_thresholds_of_any_size_survive_the_folder() -> None:
    spec = JobSpec.parse({**GOOD, "error_threshold": 10**17 + 1})
    raw = msgspec.json.encode(spec.model_dump(mode="json"))
    assert JobSpec.model_validate(msgspec.json.decode(raw)) == spec


def test_numbers_in_environment_variables_are_taken_as_their_text() -> None:
    given = {"A": 5, "B": 0.5, "C": "x"}
    spec = JobSpec.parse({"entry_script": "a.py", "inputs": "/x", "environment_variables": given})
    assert spec.environment_variables == {"A": "5", "B": "0.5", "C": "x"}
    with pytest.raises(InvalidInput, match="/environment_variables/A: must be a string") as caught:
        JobSpec.parse({"entry_script": "a.py", "inputs": "/x", "environment_variables": {"A": True}})
    assert [problem.hint for problem in caught.value.problems] == ['in quotes it is one: "true"']


def test_items_are_not_run_apart_of_jobs_with_several_mini_batches_in_flight() -> None:
    fields = {"entry_script": "a.py", "inputs": "/x", "mini_batches_in_flight": 4, "in_flight": "threads"}
    assert with_data_defaults(JobSpec.parse(fields), OWN).on_failure == "mini_batch"
    stored = JobSpec.parse({**fields, "on_failure": "isolate"})  # an earlier release has taken this
    with pytest.raises(InvalidInput, match="nobody knows which of them has ended a worker"):
        with_data_defaults(stored, OWN)


@pytest.mark.parametrize(
    "fields, fails_fast",
    [
        ({}, True),
        ({"error_threshold": 0}, False),
        ({"mini_batch_error_threshold": 5}, False),
        ({"allowed_failed_percent": 50}, False),
        ({"error_threshold": 0, "fail_fast": True}, True),
        ({"fail_fast": False}, False),
    ],
)
def test_fail_fast_is_the_default_of_our_own_form_without_a_threshold(fields: dict[str, Any], fails_fast: bool) -> None:
    spec = JobSpec.parse({"entry_script": "a.py", "inputs": "/x", **fields})
    assert spec.fail_fast is fields.get("fail_fast"), "jobs of earlier releases keep what they had"
    assert with_data_defaults(spec, OWN).fail_fast is fails_fast
    assert with_data_defaults(spec, AZURE).fail_fast is fields.get("fail_fast", False)
