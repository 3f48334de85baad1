"""Job files as text: read as YAML or JSON, and with fields that were set by their paths."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec, load_document, set_field
from tests.unit.core.test_spec import GOOD


@pytest.mark.parametrize(
    "text, told",
    [
        (b"a: b: c\n", "line 1, column 5: mapping values are not allowed here (the line is 'a: b: c')"),
        ("x: 1\ny: [a\n z: 2\n", "line 3, column 3: while parsing a flow sequence, expected ',' or ']', but got ':'"),
        ("x: {y: ${{inputs.z}}}", "within { } and [ ], an expression is in quotes"),
        (b"a: \x00", "special characters are not allowed"),
        ('{"x": [{"a": 1,\n "a": 2}]}', "line 2, column 2: the key 'a' is given twice, first on line 1"),
        (
            "x: &x {a: 1}\ny: {<<: *x,\n a: 2, 'a': 3}\n",
            "line 3, column 8: the key 'a' is given twice, first on line 3",
        ),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(text: str | bytes, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_document(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_is_read_as_json_and_what_is_nearly_so_as_yaml() -> None:
    assert load_document('{"limit":\t1e-05, "half": 1E3}') == {"limit": 1e-05, "half": 1000.0}
    assert load_document(b'[{"limit": 1e-05}]') == [{"limit": 1e-05}]
    assert load_document('{"limit": 1e-05, size: 3}') == {"limit": 1e-05, "size": 3}
    assert load_document('{"x": NaN}') == {"x": "NaN"}


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
        JobSpec.parse(load_document(text))


@given(text=st.text("!a:{}[]&*?-|>%@`'\"#, \n0189.e~_bin", max_size=25))
@settings(deadline=None, max_examples=300)
def test_any_text_is_a_document_or_told_to_be_none(text: str) -> None:
    with suppress(InvalidInput):
        load_document(text)


def test_a_document_of_megabytes_is_not_even_read() -> None:
    with pytest.raises(InvalidInput, match="larger"):
        load_document("a" * (1 << 20) + "b")


@pytest.mark.parametrize("text", ["\N{GRINNING FACE}", "a\N{ROCKET}\N{ROCKET}b", "\uffff", "\\ud83d"])
def test_characters_that_json_writes_in_two_halves_are_whole(text: str) -> None:
    assert load_document(json.dumps({text: [text]})) == {text: [text]}


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83d\ude00\ud83d"])
def test_half_of_a_character_is_told_with_its_line(half: str) -> None:
    with pytest.raises(InvalidInput, match=r"line 2, column 4: half of a character"):
        load_document(f'a: 1\nb: "{half}"')


def test_what_is_merged_in_may_be_overridden() -> None:
    text = "b: &b {k: 1, j: 1}\nc:\n  base: &c {<<: *b, k: 2}\nd: {<<: *c, k: 3}\n"
    assert load_document(text) == {
        "b": {"k": 1, "j": 1}, "c": {"base": {"k": 2, "j": 1}}, "d": {"k": 3, "j": 1},
    }  # fmt: skip


def test_keys_are_texts_also_those_that_look_like_something_else() -> None:
    text = "0: a\non: b\n1e3: c\n2001-01-01: d\nnull: e\n&k 7: {*k : f}\n<<: {1: g}\n"
    assert load_document(text) == {
        "0": "a", "on": "b", "1e3": "c", "2001-01-01": "d", "null": "e", "7": {"7": "f"}, "1": "g",
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="the key '1' is given twice, first on line 1"):
        load_document("1: a\n'1': b\n")


def test_json_is_yaml_too() -> None:
    assert JobSpec.parse(load_document(b'{"entry_script": "score.py", "inputs": "/in"}')) == JobSpec.parse(GOOD)


@pytest.mark.parametrize("text", [",", "|", ">", "\t", "%", "@x", "a: b: c"])
def test_what_is_no_yaml_is_set_as_it_stands(text: str) -> None:
    document: dict[str, Any] = {}
    set_field(document, f"append_row_separator={text}")
    assert document == {"append_row_separator": text}


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


def test_what_is_short_for_a_path_can_get_another_path_and_what_stands_beside_one() -> None:
    document: dict[str, Any] = {"inputs": {"a": "/x", "b": "/y", "c": "/c"}}
    for assignment in ("inputs.a.mode=download", "inputs.b.path=/z", "inputs.c.pth=d"):
        set_field(document, assignment)
    assert document == {
        "inputs": {"a": {"path": "/x", "mode": "download"}, "b": {"path": "/z"}, "c": {"path": "/c", "pth": "d"}}
    }


def test_an_only_input_can_be_set_by_its_name_and_get_others_beside_it() -> None:
    document: dict[str, Any] = {"inputs": "/x"}
    set_field(document, "inputs.data.path=s3://bucket/x")
    assert document == {"inputs": {"data": {"path": "s3://bucket/x"}}}
    document = {"inputs": "/x"}
    set_field(document, "inputs.model=/m")
    assert document == {"inputs": {"data": "/x", "model": "/m"}}


def test_a_path_may_lead_through_lists() -> None:
    document: dict[str, Any] = {"a": [{"b": 1}, 2]}
    for assignment in ("a.0.b=5", "a.1=x", "a.2={c: 1}"):
        set_field(document, assignment)
    assert document == {"a": [{"b": 5}, "x", {"c": 1}]}
    for assignment in ("a.7=x", "a.b=1", "a.1.x=2", "a.9.b=1"):
        with pytest.raises(InvalidInput):
            set_field(document, assignment)


@pytest.mark.parametrize("assignment", ["", "x", "=5", "name.x.y=1", "name.x=1", "x=["])
def test_what_cannot_be_set_is_told(assignment: str) -> None:
    with pytest.raises(InvalidInput):
        set_field({"name": "text"}, assignment)
