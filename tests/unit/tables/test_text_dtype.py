"""Texts in the dtype of pandas (`string_dtype: pandas`) are those that stand there as objects, to the last cell."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.intake.reading import read_job
from parallelrun_core.layout import Layout
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.message import decode, described_of
from parallelrun_master.planning.input_cuts import InputCuts, KnownInput
from parallelrun_worker.tables import assembling, by_arrow, by_pandas
from parallelrun_worker.tables.formats import json_lines
from parallelrun_worker.tables.parquet_rows import to_frame
from parallelrun_worker.tables.parsers import read_exactly
from parallelrun_worker.tables.records import Grammar, NotPlain
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.table import Table
from parallelrun_worker.tables.text_dtype import put_text_dtype, text_dtype_of
from parallelrun_worker.tables.values import BadValue, Values
from tests.odd_files.cases import Case, cases
from tests.unit.tables.test_arrow_rows import STEPS
from tests.unit.tables.test_parquet_frames import drawn_column
from tests.unit.tables.test_parsers_agree import RULES, tables

OF_PANDAS = text_dtype_of({"string_dtype": "pandas"})
"""What the pandas of these tests makes of texts; None: it makes objects, and has no other dtype to compare."""
needs_dtype = pytest.mark.skipif(OF_PANDAS is None, reason="this pandas makes objects of texts")

OWN: dict[str, Any] = {"entry_script": "e.py"}
TABLE: dict[str, Any] = {"path": "/a", "transformations": ["read_delimited"]}
MLTABLE: dict[str, Any] = {"path": "/b", "type": "mltable"}


def is_missing(value: object) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def assert_same(texts: pd.DataFrame, objects: pd.DataFrame, *, columns: set[str] | None = None) -> int:
    """Check that two tables differ in the dtype of columns of texts alone; returns how many cells there are.

    Args:
        texts, objects: the table with `string_dtype: pandas`, and with `object`.
        columns: those of texts; None: any may be.
    """
    assert list(texts.columns) == list(objects.columns)
    assert texts.index.equals(objects.index)
    for place, (name, dtype) in enumerate(texts.dtypes.items()):
        as_text, as_object = texts.iloc[:, place], objects.iloc[:, place]
        assert dtype == as_object.dtype or (as_object.dtype == object and dtype == OF_PANDAS)
        if columns is not None:
            assert (dtype == OF_PANDAS) == (name in columns), name
        for one, other in zip(as_text.tolist(), as_object.tolist(), strict=True):
            assert is_missing(one) == is_missing(other), (name, one, other)
            assert is_missing(one) or (type(one), repr(one)) == (type(other), repr(other)), name
    return texts.size


class Read:
    """The mini-batches of a job of our own form, as a worker reads them.

    Args:
        fields: of the job.
    """

    def __init__(self, data: Path, folder: Path, steps: list[Any], **fields: Any) -> None:
        folder.mkdir(parents=True)
        inputs = {"data": {"path": str(data), "transformations": steps}}
        spec = read_job({**OWN, "inputs": inputs, **fields}, folder=data).job
        self.cuts = [described_of(decode(cut.raw)) for cut in InputCuts(folder, spec, KnownInput()) if cut is not None]
        self.table = Table(json.loads(Layout(folder).inputs.read_bytes())[0], str(Layout(folder).schema(0)))

    def frames(self) -> Iterator[Any]:
        """A DataFrame for each mini-batch, or the error."""
        for cut in self.cuts:
            try:
                yield self.table.read([(bytes(piece.path).decode(), *piece.rest) for piece in cut.pieces])
            except (ValueError, OSError) as error:
                yield str(error)


def both(data: Path, steps: list[Any], **fields: Any) -> tuple[list[Any], list[Any]]:
    """The mini-batches in pandas' own dtype, and with objects."""
    home = data.parent / "jobs"
    home.mkdir(exist_ok=True)
    number = len(list(home.iterdir()))
    texts, objects = (
        list(Read(data, home / f"{number}-{dtype}", steps, string_dtype=dtype, **fields).frames())
        for dtype in ("pandas", "object")
    )
    return texts, objects


@contextmanager
def without_fast_parsers() -> Iterator[None]:
    with (
        patch.object(by_arrow, "read_delimited", side_effect=NotPlain),
        patch.object(by_pandas, "read_delimited", side_effect=NotPlain),
        patch.object(json_lines, "read_table", side_effect=NotPlain),
    ):
        yield


@pytest.fixture(scope="module")
def odd_cases() -> list[Case]:
    return list(cases(2))[::8]


@needs_dtype
def test_texts_of_odd_files_are_those_that_stand_there_as_objects(odd_cases: list[Case], tmp_path: Path) -> None:
    compared = 0
    for number, case in enumerate(odd_cases):
        data = tmp_path / str(number) / "data"
        for name, content in case.files.items():
            path = data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            texts, objects = both(data, [case.step], mini_batch_size=case.size)
        except (ValueError, OSError):
            continue  # the whole job is refused
        assert [type(each) for each in texts] == [type(each) for each in objects]
        for one, other in zip(texts, objects, strict=True):
            if isinstance(one, str):
                assert one == other
            else:
                compared += assert_same(one, other)
    assert compared > 100


@needs_dtype
@settings(max_examples=100, deadline=None)
@given(
    table=tables(),
    rule=st.sampled_from([rule for rule in RULES if rule is not None]),
    empty_as_string=st.booleans(),
    block=st.sampled_from([64, 1 << 20]),
    many=st.sampled_from([1, 512]),
)
def test_texts_have_the_dtype_of_pandas_whichever_parser_reads_them(
    *, table: tuple[str, Schema], rule: tuple[str, bool], empty_as_string: bool, block: int, many: int
) -> None:
    text, schema = table
    grammar = Grammar(",", multi_line=False)

    def values() -> Values:
        rules = Values(rule[0], is_exact=rule[1])
        rules.text_dtype = OF_PANDAS
        return rules

    try:
        expected = read_exactly(text, schema, grammar, empty_as_string=empty_as_string, values=values())
        with patch.multiple(by_arrow, BLOCK_BYTES=block, WIDE=many), patch.object(assembling, "MANY", many):
            fast = by_arrow.read_delimited(
                text.encode(), schema, grammar, empty_as_string=empty_as_string, values=values()
            )
    except (BadValue, NotPlain):
        return
    names = [name for name in expected.columns if schema.kind_of(name)["kind"] == "string"]
    put_text_dtype(expected, names, OF_PANDAS)
    pd.testing.assert_frame_equal(fast, expected)
    assert all(dtype == OF_PANDAS for name, dtype in fast.dtypes.items() if name in names)


ROWS: list[dict[str, Any]] = [
    {"a": number, "t": None if number % 5 == 0 else f"é {number}", "mixed": "x" if number == 390 else number,
     "b": ["ab", "", None, "c"][number % 4], "when": None}
    for number in range(400)
]  # fmt: skip


def files_of(kind: str, data: Path) -> None:
    """Two files of the rows, of which the first one alone has nulls in `t`."""
    data.mkdir(parents=True)
    for name, rows in (("1", ROWS), ("2", [row | {"t": "z"} for row in ROWS[:50]])):
        if kind == "read_delimited":
            pd.DataFrame(rows).to_csv(data / f"{name}.csv", index=False)
        elif kind == "read_json_lines":
            odd = [row | {"b": 7} if row["a"] == 390 else row for row in rows]
            (data / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in odd))
        else:
            plain = [row | {"mixed": str(row["mixed"])} for row in rows]
            schema = pa.schema({
                "a": pa.int64(), "t": pa.string(), "mixed": pa.string(), "b": pa.large_string(), "when": pa.string(),
            })  # fmt: skip
            pq.write_table(pa.Table.from_pylist(plain, schema=schema), data / f"{name}.parquet", row_group_size=150)


@needs_dtype
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("kind", ["read_delimited", "read_parquet", "read_json_lines"])
def test_texts_after_steps_are_those_that_stand_there_as_objects(kind: str, name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    files_of(kind, data)
    steps = [{kind: {"include_path_column": True}}, *STEPS[name]]
    texts, objects = both(data, steps, mini_batch_size="rows:200")
    assert sum(assert_same(one, other) for one, other in zip(texts, objects, strict=True))
    assert any(dtype == OF_PANDAS for one in texts for dtype in one.dtypes)
    with without_fast_parsers():
        slowly, _ = both(data, steps, mini_batch_size="rows:200")
    for one, other in zip(texts, slowly, strict=True):
        pd.testing.assert_frame_equal(one, other)


@needs_dtype
@pytest.mark.parametrize("kind", ["read_delimited", "read_parquet", "read_json_lines"])
def test_texts_of_very_many_columns_are_those_that_stand_there_as_objects(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    files_of(kind, data)
    few, _ = both(data, [kind], mini_batch_size="rows:200")
    monkeypatch.setattr(assembling, "MANY", 1)
    monkeypatch.setattr(by_arrow, "WIDE", 1)
    texts, objects = both(data, [kind], mini_batch_size="rows:200")
    assert sum(assert_same(one, other) for one, other in zip(texts, objects, strict=True))
    for one, other in zip(texts, few, strict=True):
        pd.testing.assert_frame_equal(one, other)


@needs_dtype
def test_a_column_has_the_dtype_of_its_type_in_each_mini_batch(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = "".join(f"{number},{'' if number > 200 else f'x{number}'}\n" for number in range(900))
    (data / "a.csv").write_text(f"n,t\n{rows}many,words\n")
    texts, objects = both(data, ["read_delimited"], mini_batch_size="rows:100")
    assert [str(one["t"].dtype) for one in texts] == ["str"] * 10  # also where all are null
    assert [one["n"].dtype == object for one in texts] == [False] * 9 + [True]  # a text that doesn't fit, and no other
    assert sum(assert_same(one, other) for one, other in zip(texts, objects, strict=True)) == 1802


@needs_dtype
def test_files_of_which_one_has_texts_that_are_no_unicode_are_put_together(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.jsonl").write_text('{"t": "x"}\n{"t": null}\n')
    (data / "b.jsonl").write_text('{"t": "\\ud800"}\n{"t": "y"}\n')
    read = Read(data, tmp_path / "job", ["read_json_lines"])
    pieces = [(bytes(piece.path).decode(), *piece.rest) for cut in read.cuts for piece in cut.pieces]
    frame = read.table.read(pieces)
    assert frame["t"].tolist() == ["x", None, "\ud800", "y"]
    assert frame["t"].dtype == object
    assert read.table.read(pieces[:1])["t"].dtype == OF_PANDAS


@needs_dtype
def test_columns_from_paths_and_of_groups_have_the_dtype_of_pandas(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for store in ("x", "y"):
        (data / f"s={store}").mkdir(parents=True)
        (data / f"s={store}" / "a.csv").write_text("k,t\n" + "".join(f"{n % 3},t{n}\n" for n in range(9)))
    extract = {"extract_columns_from_partition_format": "s={s}/*.csv"}
    for steps in ([extract, "read_delimited"], [{"read_delimited": {"include_path_column": True}}, extract]):
        texts, objects = both(data, steps)
        for one, other in zip(texts, objects, strict=True):
            assert_same(one, other, columns={"s", "t", "Path"})


@needs_dtype
def test_a_path_that_is_no_unicode_is_an_object_in_its_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t\nx\n")
    read = Read(tmp_path, tmp_path / "_job", [{"read_delimited": {"include_path_column": True}}])
    frame = pd.DataFrame({"t": ["x"]})
    dressed = read.table.dressed(frame, "/data/\udcff.csv", [], [])
    assert dressed["Path"].tolist() == ["/data/\udcff.csv"]


@needs_dtype
@pytest.mark.parametrize("rows", [0, 1, 7, 1500])
def test_parquet_texts_are_those_that_are_objects_otherwise(rows: int) -> None:
    draw = random.Random(rows)
    for _ in range(3 if rows > 1000 else 40):
        table = pa.table({f"c{at}": drawn_column(draw, rows) for at in range(draw.randint(1, 6))})
        texts = {
            name for name, kind in zip(table.column_names, table.schema.types, strict=True)
            if pa.types.is_string(kind) or pa.types.is_large_string(kind)
        }  # fmt: skip
        assert_same(to_frame(table, text_dtype=OF_PANDAS), to_frame(table), columns=texts)


def test_an_older_pandas_makes_objects() -> None:
    with patch.object(pd, "Series", partial(pd.Series, dtype=object)):
        assert text_dtype_of({"string_dtype": "pandas"}) is None


@pytest.mark.parametrize("plan", [
    {}, {"string_dtype": "object"}, {"string_dtype": "pandas", "mini_batch_format": "arrow"},
])  # fmt: skip
def test_texts_are_objects_where_nobody_asks_for_the_dtype_of_pandas(plan: dict[str, Any]) -> None:
    assert text_dtype_of(plan) is None


@pytest.mark.parametrize("inputs, dtype", [
    ({"a": TABLE}, "pandas"),
    ({"a": TABLE, "b": MLTABLE}, "object"),
    ({"b": MLTABLE}, "object"),
    ({"a": "/files"}, ""),
])  # fmt: skip
def test_the_dtype_of_texts_is_decided_when_a_job_is_read(inputs: dict[str, Any], dtype: str) -> None:
    job = {**OWN, "inputs": inputs, "input_data": list(inputs)}
    assert read_job(job).job.string_dtype == dtype
    assert read_job({**job, "string_dtype": "object"}).job.string_dtype == "object"
    assert read_job({**job, "string_dtype": "pandas"}).job.string_dtype == "pandas"


def test_a_job_that_an_earlier_release_has_stored_keeps_objects() -> None:
    stored = JobSpec.parse({**OWN, "inputs": {"a": TABLE}})
    assert stored.string_dtype == ""
    assert plan_inputs(stored)[0].string_dtype == "object"


def test_a_document_of_azure_keeps_objects_unless_it_says_otherwise(tmp_path: Path) -> None:
    config = {
        "entry_script": "e.py", "source_directory": ".", "environment": "azureml:x@latest", "error_threshold": 1,
        "output_action": "summary_only", "node_count": 1, "compute_target_name": "any",
    }  # fmt: skip
    document = {"parallel_run_config": config, "inputs": [TABLE]}
    assert read_job(document, folder=tmp_path).job.string_dtype == "object"
    asking = {**document, "arguments": ["--string_dtype", "pandas"]}
    assert read_job(asking, folder=tmp_path).job.string_dtype == "pandas"
