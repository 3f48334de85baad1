"""A job spec is checked whole: each wrong field with its place, why, and what was probably meant."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.spec import JobSpec, load_document, set_field

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
    assert (spec.mini_batch_size, spec.run_invocation_timeout, spec.run_max_try) == (10, 60, 3)
    assert (spec.error_threshold, spec.mini_batch_error_threshold, spec.allowed_failed_percent) == (-1, -1, 100)
    assert (spec.append_row_file_name, spec.writes_rows) == ("parallel_run_step.txt", True)


@pytest.mark.parametrize(
    "field, value, why",
    [
        ("entry_script", "", "at least 1"),
        ("entry_script", None, "string"),
        ("entry_script", 7, "string"),
        ("inputs", {}, "at least 1"),
        ("inputs", [], "dictionary"),
        ("inputs", {"a b": "/x"}, "not an input name"),
        ("inputs", {"1a": "/x"}, "not an input name"),
        ("inputs", {"": "/x"}, "not an input name"),
        ("mini_batch_size", 0, "greater than or equal to 1"),
        ("mini_batch_size", -1, "greater than or equal to 1"),
        ("mini_batch_size", 1.5, "integer"),
        ("mini_batch_size", "many", "integer"),
        ("mini_batch_size", 10**9, "less than or equal"),
        ("run_max_try", 0, "greater than or equal to 1"),
        ("run_invocation_timeout", 0, "greater than 0"),
        ("run_invocation_timeout", -5, "greater than 0"),
        ("run_invocation_timeout", float("nan"), "input"),
        ("run_invocation_timeout", float("inf"), "less than"),
        ("error_threshold", -2, "greater than or equal to -1"),
        ("mini_batch_error_threshold", -2, "greater than or equal to -1"),
        ("allowed_failed_percent", 101, "less than or equal to 100"),
        ("allowed_failed_percent", -0.1, "greater than or equal to 0"),
        ("allowed_failed_percent", float("nan"), "input"),
        ("output_action", "append", "append_row"),
        ("logging_level", "LOUD", "DEBUG"),
        ("instance_count", 0, "greater than or equal to 1"),
        ("name", "", "pattern"),
        ("name", "-x", "pattern"),
        ("name", "job\n", "pattern"),
        ("name", "a/b", "pattern"),
        ("append_row_file_name", "../x", "plain file name"),
        ("append_row_file_name", "a/b", "plain file name"),
        ("append_row_file_name", "..", "plain file name"),
        ("append_row_file_name", ".", "plain file name"),
        ("append_row_file_name", "a\0b", "plain file name"),
        ("append_row_file_name", "a\nb", "plain file name"),
        ("append_row_file_name", "", "at least 1"),
        ("append_row_file_name", "a" * 256, "at most 255"),
        ("append_row_file_name", "é" * 200, "255"),
        ("environment_variables", {"A=B": "x"}, "name of a variable"),
        ("environment_variables", {"": "x"}, "name of a variable"),
        ("environment_variables", {"A": "x\0y"}, "NUL"),
        ("program_arguments", "--x 'open", "quotation"),
        ("program_arguments", "${{inputs.nothing}}", "nothing"),
        ("input_data", "nothing", "nothing"),
        ("input_data", ["data", "data"], "twice"),
        ("code", "/a\0b", "NUL"),
        ("output", "/a\0b", "NUL"),
        ("entry_script", "a\0b.py", "NUL"),
    ],
)
def test_a_bad_value_is_told_with_its_place_and_reason(field: str, value: object, why: str) -> None:
    found = problems({**GOOD, field: value})
    assert list(found) == [f"/{field}"]
    assert why.lower() in found[f"/{field}"].lower()


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
    assert {name: given.path for name, given in moved.inputs.items()} == {"a": f"{tmp_path}/in/*.txt", "b": "/abs"}
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


@pytest.mark.parametrize(
    "text",
    [
        "a: [", "a: b: c", "\t", "a: \0", "&a [*a", "!!python/object:os.system x", "[" * 3000, "a: 2001-99-99",
        "a: " + "9" * 5000, "a: !!bool foo", "a: !!timestamp foo", "a: !!int ''", "a: !!float x", "? {a: b}\n: c",
        "!!binary '*'", b"\xff\xfe\xff",
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_read_is_told_as_such(text: str | bytes) -> None:
    with pytest.raises(InvalidInput):
        JobSpec.parse_text(text)


@given(text=st.text("!a:{}[]&*?-|>%@`'\"#, \n0189.e~_bin", max_size=25))
@settings(deadline=None, max_examples=300)
def test_any_text_is_a_document_or_told_to_be_none(text: str) -> None:
    with suppress(InvalidInput):
        load_document(text)


def test_a_document_of_megabytes_is_not_even_read() -> None:
    with pytest.raises(InvalidInput, match="larger"):
        load_document("a" * (1 << 20) + "b")


def test_json_is_yaml_too() -> None:
    assert JobSpec.parse_text(b'{"entry_script": "score.py", "inputs": "/in"}') == JobSpec.parse(GOOD)


def test_fields_are_set_by_path() -> None:
    document: dict[str, Any] = {"inputs": {"a": {"path": "/x"}}, "tags": None}
    set_field(document, "inputs.a.path=/y=z")
    set_field(document, "mini_batch_size=5")
    set_field(document, "environment_variables.A=text")
    set_field(document, "input_data=[a]")
    assert document == {
        "inputs": {"a": {"path": "/y=z"}}, "tags": None, "mini_batch_size": 5, "environment_variables": {"A": "text"},
        "input_data": ["a"],
    }  # fmt: skip


@pytest.mark.parametrize("assignment", ["", "x", "=5", "name.x.y=1", "name.x=1", "x=["])
def test_what_cannot_be_set_is_told(assignment: str) -> None:
    with pytest.raises(InvalidInput):
        set_field({"name": "text"}, assignment)
