"""Frames of Parquet files: texts that Arrow makes objects at once are those that pandas' own conversion gives."""

from __future__ import annotations

import datetime
import random
import weakref
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parallelrun_worker.tables.conversion import as_objects
from parallelrun_worker.tables.parquet_reader import ParquetReader
from parallelrun_worker.tables.parquet_rows import to_frame

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DRAWS: list[Callable[[random.Random], Any]] = [
    lambda draw: draw.choice(["a", "b", "é", ""]), lambda draw: str(draw.random()), lambda draw: draw.randint(-9, 9),
    lambda draw: draw.random(), lambda draw: draw.random() < 0.5,
    lambda draw: datetime.date(2020, 1, draw.randint(1, 9)),
    lambda draw: datetime.datetime(2020, 1, draw.randint(1, 9)), lambda draw: ["x", None],  # noqa: DTZ001 - local
    lambda draw: {"a": draw.randint(0, 9), "t": "x"}, lambda draw: Decimal(draw.randint(0, 9)),
]  # fmt: skip


def drawn_column(draw: random.Random, rows: int) -> Any:
    make, share = draw.choice(DRAWS), draw.choice([0, 0.3])
    values = [None if draw.random() < share else make(draw) for _ in range(rows)]
    column = pa.array(values, pa.string() if not rows else None)
    if pa.types.is_string(column.type):
        forms: list[Callable[[], Any]] = [
            lambda: column, lambda: column.cast(pa.large_string()), column.dictionary_encode,
        ]  # fmt: skip
        column = draw.choice(forms)()
    cut = draw.randint(0, rows)
    return pa.chunked_array([column.slice(0, cut), column.slice(cut)], type=column.type)


def by_pandas(table: Any) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    for place, dtype in enumerate(frame.dtypes):
        if str(dtype) in ("str", "string"):
            frame.isetitem(place, as_objects(frame.iloc[:, place]))
    return frame


def shown(frame: pd.DataFrame) -> list[Any]:
    columns = [(str(frame[name].dtype), [(type(each), repr(each)) for each in frame[name]]) for name in frame]
    return [list(frame.columns), frame.columns.dtype, len(frame), type(frame.index), columns]


@pytest.mark.parametrize("rows", [0, 1, 7, 1500])
def test_parquet_rows_become_the_same_frame_as_by_pandas(rows: int) -> None:
    draw = random.Random(rows)
    for _ in range(3 if rows > 1000 else 40):
        table = pa.table({f"c{at}": drawn_column(draw, rows) for at in range(draw.randint(1, 6))})
        assert shown(to_frame(table)) == shown(by_pandas(table))


def test_parquet_rows_of_very_many_columns_become_the_same_frame() -> None:
    draw = random.Random(5)
    table = pa.table({f"c{at}": drawn_column(draw, 3) for at in range(600)})
    frame = to_frame(table)
    assert shown(frame) == shown(by_pandas(table))
    frame.loc[0, "c0"] = None  # it is the user's own
    assert frame["c0"].isna()[0]


@pytest.mark.parametrize("group_rows", [4000, 1500])
def test_parquet_texts_that_repeat_are_read_as_numbers_and_become_the_same_objects(
    tmp_path: Path, group_rows: int
) -> None:
    draw = random.Random(group_rows)
    texts = [draw.choice(["a", "b", "é" * 9, "", None]) for _ in range(4000)]
    columns = {
        "repeats": pa.array(texts), "large": pa.array(texts, pa.large_string()),
        "unique": [str(number) for number in range(4000)],
        "category": pa.array(texts).dictionary_encode(), "late": [None] * 3999 + ["x"], "null": [None] * 4000,
        "inside": [{"repeats": text} for text in texts], "list": [[text] for text in texts], "number": range(4000),
    }  # fmt: skip
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=group_rows)
    for start, end in ((0, -1), (0, 1500), (100, 3200), (1499, 1501), (7, 7)):
        rows, repeating = ParquetReader().read_for_frame((path, start, end), None)
        assert start == end or {"repeats", "large"} <= repeating <= {"repeats", "large", "late"}
        frame = to_frame(rows, is_exact=True, repeating=repeating)
        assert shown(frame) == shown(to_frame(ParquetReader().read((path, start, end), None), is_exact=True))
        some = ["number", "repeats"]
        selected, repeating = ParquetReader().read_for_frame((path, start, end), some)
        expected = to_frame(ParquetReader().read((path, start, end), some), is_exact=True)
        assert shown(to_frame(selected, is_exact=True, repeating=repeating)) == shown(expected)


def test_parquet_files_that_were_read_leave_nothing_of_their_readers_in_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a", "b"] * 2000}), path)

    def reading() -> weakref.ref[Any]:
        rows, repeating = ParquetReader().read_for_frame((path, 0, -1), None)
        assert repeating == {"text"}  # its footer was asked for columns
        return weakref.ref(rows)

    assert reading()() is None
