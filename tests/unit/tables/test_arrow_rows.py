"""Tables of Arrow have the values that those of pandas have: whole numbers and nulls as they are, mixed columns as
texts."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from parallelrun_worker.tables import by_arrow
from parallelrun_worker.tables.arrow_arrays import array_of, arrow_of
from parallelrun_worker.tables.arrow_rows import ArrowRows, handed_over
from parallelrun_worker.tables.parsers import read_exactly
from parallelrun_worker.tables.records import Grammar, NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.steps import text_of
from parallelrun_worker.tables.table import Table
from parallelrun_worker.tables.values import BadValue, Values
from tests.odd_files.cases import Case, cases
from tests.odd_files.reading import Outcome, outcome_of
from tests.odd_files.verdicts import FORMS
from tests.unit.tables.test_parsers_agree import RULES, tables

DAY = datetime.datetime(2024, 1, 2)  # noqa: DTZ001 - columns of times have no zone


def is_missing(value: object) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def is_same(by_pandas: Any, by_arrow: Any) -> bool:
    """Return whether two cells hold the same; a value of a mixed column is a text for Arrow."""
    if is_missing(by_pandas) or is_missing(by_arrow):
        return is_missing(by_pandas) and is_missing(by_arrow)
    if isinstance(by_pandas, pd.Timestamp) and not isinstance(by_arrow, str):
        return bool(by_pandas == pd.Timestamp(by_arrow))
    if isinstance(by_pandas, list | dict):
        return by_arrow in (by_pandas, json.dumps(by_pandas, ensure_ascii=False)) or (
            _without_null(by_arrow) == _without_null(by_pandas)
        )
    if hasattr(by_pandas, "tolist") and not isinstance(by_arrow, str):
        return bool(by_pandas.tolist() == by_arrow)
    is_plain = isinstance(by_arrow, str) == isinstance(by_pandas, str)
    return bool(by_pandas == by_arrow) if is_plain else text_of(by_pandas) == by_arrow


def _without_null(value: Any) -> Any:
    """Return a value without names that have no value: each object of a column of Arrow has the names of all."""
    if isinstance(value, dict):
        return {name: _without_null(each) for name, each in value.items() if each is not None}
    return [_without_null(each) for each in value] if isinstance(value, list) else value


def assert_same(frame: Any, rows: Any) -> None:
    assert rows.column_names == [str(name) for name in frame.columns]
    assert len(rows) == len(frame)
    for place, name in enumerate(rows.column_names):
        for by_pandas, by_arrow_ in zip(frame.iloc[:, place], rows.column(place).to_pylist(), strict=True):
            assert is_same(by_pandas, by_arrow_), (name, by_pandas, by_arrow_)


@settings(max_examples=300, deadline=None)
@given(tables(), st.sampled_from(RULES), st.sampled_from([64, 1 << 20]))
@example(("1.5\nnan\n", Schema(["a"], [{"kind": "float"}])), None, 64)
def test_arrow_rows_of_any_text_are_those_of_the_grammar(
    table: tuple[str, Schema], rule: tuple[str, bool] | None, block: int
) -> None:
    text, schema = table
    kinds = dict(zip(schema.names, schema.kinds, strict=True))
    grammar = Grammar(",", multi_line=False)

    def values() -> Values | None:
        return None if rule is None else Values(rule[0], is_exact=rule[1])

    noted = values(), values()
    try:
        expected = arrow_of(read_exactly(text, schema, grammar, empty_as_string=False, values=noted[0]), kinds)
    except (BadValue, UnicodeError):
        return  # errors are tested where texts are read for pandas
    with patch.object(by_arrow, "BLOCK_BYTES", block):
        try:
            rows = by_arrow.read_table(text.encode(), Schema(schema.names, schema.kinds), grammar,
                                       empty_as_string=False, values=noted[1])  # fmt: skip
        except NotPlain:
            return
    assert rows.schema.types == expected.schema.types
    assert rows.to_pylist() == expected.to_pylist()
    by_grammar, fast = noted
    if by_grammar is not None and fast is not None and not any("example" in kind for kind in schema.kinds):
        assert by_grammar.found == fast.found  # where all words are odd, one warning tells of all of them


def test_arrow_rows_that_are_read_twice_for_a_step_are_warned_of_once(tmp_path: Path) -> None:
    rows = "".join(f"{n}\n" for n in range(300))
    (tmp_path / "a.csv").write_text(f"v\n{rows}n/a\né\n", encoding="utf-8")
    step = {"read_delimited": {"encoding": "latin1", "on_mismatch": "null", "inference": "exact"}}
    inputs = {"data": {"path": str(tmp_path / "a.csv"), "transformations": [step, {"filter": "col('v') != 'x'"}]}}
    spec = read_job({"entry_script": "e.py", "inputs": inputs, "mini_batch_size": "1mb"}, folder=tmp_path).job
    warnings = [
        outcome_of(spec, tmp_path / f"job-{is_arrow}", is_arrow=is_arrow).warnings for is_arrow in (False, True)
    ]
    assert warnings[0] == warnings[1]
    assert any("(2 values)" in warning for warning in warnings[0])


@pytest.fixture(scope="module")
def odd_cases() -> list[Case]:
    return list(cases(1))


@pytest.mark.parametrize("form", list(FORMS))
def test_arrow_rows_of_odd_files_are_those_of_pandas(form: str, odd_cases: list[Case], tmp_path: Path) -> None:
    compared = 0
    for number, case in enumerate(odd_cases):
        data = tmp_path / str(number)
        data.mkdir()
        for name, content in case.files.items():
            path = data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        spec = FORMS[form](data, case.step, case.size)
        outcomes: list[Outcome] = [
            outcome_of(spec, tmp_path / f"job-{number}-{is_arrow}", is_arrow=is_arrow) for is_arrow in (False, True)
        ]
        by_pandas, by_arrow_ = outcomes
        if by_arrow_.refused != by_pandas.refused:
            assert all("surrogate" in refusal for refusal in {*by_arrow_.refused} - {*by_pandas.refused})
            continue
        assert by_arrow_.warnings == by_pandas.warnings
        assert by_arrow_.crashes == by_pandas.crashes
        assert len(by_arrow_.rows) == len(by_pandas.rows)
        for one, other in zip(by_pandas.rows, by_arrow_.rows, strict=True):
            assert list(one) == list(other)
            assert all(is_same(one[name], other[name]) for name in one), (case.kind, one, other)
            compared += 1
    assert compared > 1000


def table_of(data: Path, steps: list[Any], **fields: Any) -> tuple[Table, list[Any]]:
    """A job's table, and one piece that is all of its first file."""
    from parallelrun_core.layout import Layout
    from parallelrun_core.wire.message import decode, described_of
    from parallelrun_master.planning.input_cuts import InputCuts, KnownInput

    inputs = {"data": {"path": str(data), "transformations": steps}}
    folder = data.parent / f"job-{abs(hash(json.dumps(steps)))}"
    folder.mkdir()
    spec = read_job({"entry_script": "e.py", "inputs": inputs, **fields}, folder=data).job
    cuts = [described_of(decode(cut.raw)) for cut in InputCuts(folder, spec, KnownInput()) if cut is not None]
    pieces = [(bytes(piece.path).decode(), *piece.rest) for cut in cuts for piece in cut.pieces]
    record = json.loads(Layout(folder).inputs.read_bytes())[0]
    return Table(record, str(Layout(folder).schema(0))), pieces


STEPS: dict[str, list[Any]] = {
    "none": [],
    "columns": [{"keep_columns": ["b", "a", "t"]}, {"drop_columns": "b"}],
    "filter": [{"filter": 'col("a") > 2 and not is_null(col("t"))'}],
    "filter of mixed": [{"filter": 'col("mixed") == 3 or col("mixed") == "x"'}],
    "conversion": [{"convert_column_types": [
        {"columns": "a", "column_type": "string"}, {"columns": "t", "column_type": "int"},
        {"columns": "when", "column_type": "string"}]}],
    "sample": [{"take_random_sample": {"probability": 0.5, "seed": 3}}],
    "skip": [{"skip": 2}, {"take": 3}],
    "tail": [{"filter": 'col("a") > 1'}, {"take": 3}],
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("kind", ["read_delimited", "read_parquet", "read_json_lines"])
def test_arrow_rows_after_steps_are_those_of_pandas(kind: str, name: str, tmp_path: Path) -> None:
    data = tmp_path / "data" / "year=2024"
    data.mkdir(parents=True)
    rows = [
        {"a": number, "b": number / 4 if number != 5 else None, "t": str(number) if number % 3 else None,
         "mixed": number, "big": (1 << 60) + number if number % 2 else None,
         "yes": number % 2 == 0 if number else None, "when": "2024-01-02"}
        for number in range(400)
    ]  # fmt: skip
    frame = pd.DataFrame(rows).astype({"big": "Int64"})
    if kind == "read_parquet":
        frame = frame.assign(when=pd.to_datetime(frame["when"]))
        pq.write_table(pa.Table.from_pandas(frame), data / "a.parquet")
    else:
        texts = [row | {"mixed": "x"} if row["a"] == 390 else row for row in rows]
        if kind == "read_delimited":
            pd.DataFrame(texts).astype({"big": "Int64"}).to_csv(data / "a.csv", index=False)
        else:
            (data / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in texts))
    steps = [{kind: {"include_path_column": True}}, *STEPS[name],
             {"extract_columns_from_partition_format": {"partition_format": "year={year}/{name}"}}]  # fmt: skip
    table, pieces = table_of(tmp_path / "data", steps, mini_batch_format="arrow")
    expected = table.read(pieces)
    result = ArrowRows(table, "arrow").read(pieces)
    assert_same(expected, result)
    if name == "none":
        assert str(result.schema.field("a").type) == "int64"
        assert str(result.schema.field("big").type) == "int64"
        assert str(result.schema.field("yes").type) == "bool"
        assert str(result.schema.field("mixed").type) == ("int64" if kind == "read_parquet" else "string")


def test_arrow_rows_of_groups_are_whole_numbers_beside_nulls() -> None:
    rows = arrow_of(pd.DataFrame({"n": [1.0, None]}), {"n": {"kind": "int"}})
    assert rows.to_pylist() == [{"n": 1}, {"n": None}]


def test_arrow_arrays_of_mixed_values_are_texts_and_objects_are_structs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pa.types, "is_string_view", raising=False)  # as in pyarrow 15
    assert array_of(pd.Series([1, "x", None, DAY], dtype=object)).to_pylist() == [
        "1", "x", None, "2024-01-02T00:00:00+00:00"
    ]  # fmt: skip
    assert array_of(pd.Series([{"a": 1}, None], dtype=object)).to_pylist() == [{"a": 1}, None]
    assert array_of(pd.Series([{"a": 1}, {"a": "x"}], dtype=object)).to_pylist() == ['{"a": 1}', '{"a": "x"}']
    assert array_of(pd.Series([1 << 63, None], dtype=object)).to_pylist() == [1 << 63, None]
    assert array_of(pd.Series([1 << 70, None], dtype=object)).to_pylist() == [str(1 << 70), None]


def test_arrow_arrays_refuse_half_of_a_surrogate_pair() -> None:
    with pytest.raises(ValueError, match=r"column 'a': .* surrogate"):
        arrow_of(pd.DataFrame({"a": ["\ud800"]}, dtype=object), {})


def test_arrow_rows_are_handed_over_in_each_form() -> None:
    rows = pa.table({"a": [1, None], "t": ["x", None]}).replace_schema_metadata({b"pandas": b"{}", b"geo": b"1"})
    arrow = handed_over(rows, "arrow")
    assert arrow.schema.metadata == {b"geo": b"1"}
    frame = handed_over(rows, "pandas_pyarrow")
    assert [str(dtype) for dtype in frame.dtypes] == ["int64[pyarrow]", "string[pyarrow]"]
    polars = pytest.importorskip("polars")
    frame = handed_over(rows, "polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame.rows() == [(1, "x"), (None, None)]


def test_arrow_rows_of_a_list_of_files_are_refused_at_submission(tmp_path: Path) -> None:
    from parallelrun_core.mltable.plan import plan_inputs

    job = {"entry_script": "e.py", "inputs": {"data": str(tmp_path)}, "mini_batch_format": "arrow"}
    with pytest.raises(InvalidInput, match="arrow is a form of tables") as refused:
        plan_inputs(read_job(job, folder=tmp_path).job)
    assert refused.value.problems[0].pointer == "/mini_batch_format"
