"""Rows of JSON that are objects of a script's own classes: with all their values, or refused by name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pydantic
import pytest

from parallelrun_worker.data_warnings import DataWarnings
from parallelrun_worker.rows import BadReturn, json_lines, renderer
from parallelrun_worker.rows.returned_columns import ReturnedColumns


@dataclasses.dataclass
class Point:
    """What scripts return as rows."""

    x: int
    label: str = "é"


class Model(pydantic.BaseModel):
    """The same as a model of pydantic."""

    x: int


def test_rows_of_json_that_are_dataclasses_and_models_are_objects() -> None:
    rendered = json_lines.render([Point(1), {"at": Point(2)}, Model(x=3)])
    assert rendered.data.decode() == '{"x": 1, "label": "é"}\n{"at": {"x": 2, "label": "é"}}\n{"x": 3}\n'


@pytest.mark.parametrize(
    "value, name", [((each for each in [1]), "generator"), (object(), "object"), (map(str, ()), "map")]
)
def test_rows_of_json_without_a_text_of_their_own_are_refused_by_name(value: object, name: str) -> None:
    for element in (value, {"a": value}, [value]):
        with pytest.raises(BadReturn, match=f"of the type {name}"):
            json_lines.render([element])


def test_rows_of_json_keep_each_key_or_are_refused() -> None:
    with pytest.raises(BadReturn, match="two keys that are the same text: 1, '1'"):
        json_lines.render([{1: "a", "1": "b"}])
    assert json_lines.render([{1: "a", "2": "b"}]).data == b'{"1": "a", "2": "b"}\n'


def test_rows_that_are_none_at_all_say_what_may_be_missing() -> None:
    with pytest.raises(BadReturn, match=r"returned NoneType: is a `return` missing.*summary_only, and return"):
        json_lines.render(None)


def test_rows_of_frames_with_other_columns_than_the_first_are_told(tmp_path: Path) -> None:
    warnings = DataWarnings()
    output = {"format": "text", "separator": ",", "safe": False}
    for frame, times in (({"a": [1], "b": [2]}, 0), ({"b": [2], "a": [1]}, 1), ({"a": [1], "b": [2]}, 0)):
        render = renderer(output, ReturnedColumns(str(tmp_path / "schema.returned.json"), warnings))  # another worker
        render(pd.DataFrame(frame))
        assert [each[5] for each in json.loads(warnings.take())] == [1] * times
