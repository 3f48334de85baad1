"""Rows of JSON that are objects of a script's own classes: with all their values, or refused by name."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pydantic
import pytest

from parallelrun_worker.rows import BadReturn, renderer
from parallelrun_worker.rows.formats.jsonl import JsonRows
from parallelrun_worker.rows.returned_columns import ReturnedColumns
from parallelrun_worker.rows.returned_objects import ReturnedObjects
from parallelrun_worker.tables.data_warnings import DataWarnings

TEXT = {"format": "text", "header": False, "separator": ",", "safe": False}


@dataclasses.dataclass
class Point:
    """What scripts return as rows."""

    x: int
    label: str = "é"


class Model(pydantic.BaseModel):
    """The same as a model of pydantic."""

    x: int


def test_rows_of_json_that_are_dataclasses_and_models_are_objects() -> None:
    rendered = JsonRows({}).render([Point(1), {"at": Point(2)}, Model(x=3)])
    assert rendered.data.decode() == '{"x": 1, "label": "é"}\n{"at": {"x": 2, "label": "é"}}\n{"x": 3}\n'


@pytest.mark.parametrize(
    "value, name", [((each for each in [1]), "generator"), (object(), "object"), (map(str, ()), "map")]
)
def test_rows_of_json_without_a_text_of_their_own_are_refused_by_name(value: object, name: str) -> None:
    for element in (value, {"a": value}, [value]):
        with pytest.raises(BadReturn, match=f"of the type {name}"):
            JsonRows({}).render([element])
    with pytest.raises(BadReturn, match=f"of the type {name}"):
        renderer({"format": "parquet"}).render([value])


@pytest.mark.parametrize("value", [pd.DataFrame({"a": range(99)}), pd.Series(range(99))])
def test_rows_that_are_tables_of_which_a_text_leaves_out_rows_are_counted_or_refused(value: Any) -> None:
    for rows in ([value], [{"a": value}], [(1, value)]):
        assert renderer(TEXT).render(rows).shortened == 1
    assert renderer(TEXT).render([value.head(9)]).shortened == 0
    for output in ("jsonl", "parquet"):
        if output == "jsonl" and value.ndim == 1:
            assert json.loads(renderer({"format": output}).render([{"a": value}]).data) == {"a": list(range(99))}
            continue
        with pytest.raises(BadReturn, match=f"of the type {type(value).__name__}"):
            renderer({"format": output}).render([{"a": value}])


@pytest.mark.parametrize("rows", [[{"a": [object()]}], [object(), "x"], pd.DataFrame({"a": [object()]})])
def test_rows_of_text_without_a_text_of_their_own_are_refused_or_told(rows: Any) -> None:
    warnings = DataWarnings()
    with pytest.raises(BadReturn, match=r"of the type object.*append_row_objects: text"):
        renderer(TEXT, objects=ReturnedObjects(warnings, refuses=True)).render(rows)
    rendered = renderer(TEXT, objects=ReturnedObjects(warnings, refuses=False)).render(rows)
    assert b"<object object at 0x" in rendered.data
    assert "of the type object" in warnings.take().decode()
    renderer(TEXT, objects=ReturnedObjects(warnings, refuses=True)).render(["a text with <x at 0x1>", 1, None])
    assert not warnings


def test_rows_of_parquet_that_are_dataclasses_have_their_fields_as_columns() -> None:
    pa = pytest.importorskip("pyarrow")
    rendered = renderer({"format": "parquet"}).render([Point(1), Model(x=3)])
    assert pa.ipc.open_stream(rendered.data).read_all().to_pydict() == {"x": [1, 3], "label": ["é", None]}


@dataclasses.dataclass
class Nested:
    objects: object


@pytest.mark.parametrize("wrap", [
    lambda each: each, lambda each: {"a": [each]}, lambda each: [[each], {"b": 1}], lambda each: {"x": (1, each)},
    lambda each: Nested([each]), lambda each: {"nan": float("nan"), "a": {"b": each}},
])  # fmt: skip
def test_rows_of_json_keep_each_key_or_are_refused(wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(BadReturn, match="two keys that are the same text: 1, '1'"):
        JsonRows({}).render([wrap({1: "a", "1": "b"})])
    for twice in ({True: 1, "true": 2}, {None: 1, "null": 2}, {(1,): 1, "(1,)": 2}):
        with pytest.raises(BadReturn, match="two keys that are the same text"):
            JsonRows({}).render([wrap(twice)])
    JsonRows({}).render([wrap({1: "a", "2": "b", "{": "{}"})])


def test_rows_of_json_have_keys_that_are_numbers_as_text() -> None:
    assert JsonRows({}).render([{1: "a", "2": "b"}]).data == b'{"1": "a", "2": "b"}\n'


def test_rows_that_are_none_at_all_say_what_may_be_missing() -> None:
    with pytest.raises(BadReturn, match=r"returned NoneType: is a `return` missing.*summary_only, and return"):
        JsonRows({}).render(None)


def test_rows_of_frames_with_other_columns_than_the_first_are_told(tmp_path: Path) -> None:
    warnings = DataWarnings()
    output = {"format": "text", "header": False, "separator": ",", "safe": False}
    for frame, times in (({"a": [1], "b": [2]}, 0), ({"b": [2], "a": [1]}, 1), ({"a": [1], "b": [2]}, 0)):
        render = renderer(
            output, ReturnedColumns(str(tmp_path / "schema.returned.json"), warnings)
        ).render  # another worker
        render(pd.DataFrame(frame))
        assert [each[5] for each in json.loads(warnings.take())] == [1] * times


def test_rows_of_frames_are_put_in_order_by_the_names_of_their_columns(tmp_path: Path) -> None:
    warnings = DataWarnings()
    frames = [
        (pd.DataFrame({"a": [1], "b": [2]}), b"1,2\n"),
        (pd.DataFrame({"b": [4], "a": [3]}), b"3,4\n"),
        (pd.DataFrame({"a": [5]}), b"5,\n"),
        (pd.DataFrame({"c": ["x"], "b": [6]}), b",6,x\n"),
        (pd.DataFrame([[7, 8, 9]], columns=["a", "b", "b"]), b"7,8,,9\n"),
        (pd.DataFrame({"a": [1], "b": [2]}), b"1,2,,\n"),
    ]
    for number, (frame, expected) in enumerate(frames):
        columns = ReturnedColumns(str(tmp_path / "schema.returned.json"), warnings, by_name=True)  # another worker
        assert renderer(TEXT, columns).render(frame).data == (b"1,2\n" if number == len(frames) - 1 else expected)
        assert bool(json.loads(warnings.take())) == (0 < number < len(frames) - 1)
    same = ReturnedColumns(str(tmp_path / "schema.returned.json"), warnings, by_name=True)
    render = renderer(TEXT, same).render
    for frame, expected in frames[3:]:
        assert render(frame).data == expected


def test_rows_of_frames_with_ever_new_columns_are_refused(tmp_path: Path) -> None:
    columns = ReturnedColumns(str(tmp_path / "schema.returned.json"), DataWarnings(), by_name=True)
    render = renderer(TEXT, columns).render
    for number in range(100):
        render(pd.DataFrame({f"c{number}": [number]}))
    with pytest.raises(BadReturn, match=r"'c100'.*append_row_columns: position"):
        render(pd.DataFrame({"c100": [100]}))
