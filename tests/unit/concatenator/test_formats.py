"""Outputs with a header and Parquet files: whole, in order, the same bytes each time, whatever each mini-batch had."""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import math
import uuid
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_concatenator.formats import assembler_of, parquet
from parallelrun_concatenator.merge import merge
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder.decisions import DecisionWriter, read_outcomes
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.row_formats import row_format
from parallelrun_worker.rows import renderer
from tests.unit.core.factories import names_in, outcome


class Job:
    """A job whose mini-batches returned these things, committed in another order than theirs."""

    def __init__(self, folder: Path, name: str, returned: list[Any], **fields: object) -> None:
        self.folder = folder
        self.parts = folder / "parts"
        self.parts.mkdir(parents=True)
        self.target = folder / "out" / name
        self.spec = JobSpec.parse({"entry_script": "e.py", "inputs": "/in", "append_row_file_name": name, **fields})
        output = {
            "format": row_format(str(self.target)), "separator": self.spec.append_row_separator,
            "header": self.spec.append_row_dataframe_header, "safe": False,
        }  # fmt: skip
        render = renderer(output).render
        made = []
        for number, each in reversed(list(enumerate(returned))):
            (data, rows, *_), part = render(each), f"part{number % 2}"
            with (self.parts / part).open("ab") as file:
                at = file.tell()
                file.write(data)
            made.append(outcome(number, part=part, offset=at, length=len(data), crc=zlib.crc32(data), rows=rows))
        log = DecisionWriter(folder, 1)
        log.add(made)
        log.sync()
        log.close()

    def merge(self) -> bytes:
        table = SegmentTable(self.folder)
        assembler = assembler_of(self.spec, str(self.target), table, self.parts)
        self.notes = [*assembler.notes]
        merged = merge(table.in_order(), self.parts, str(self.target), lambda _: None, assembler)
        data = self.target.read_bytes()
        assert (merged.length, merged.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert names_in(self.target.parent) == [self.target.name]
        return data

    def parquet(self) -> pa.Table:
        return pyarrow.parquet.read_table(io.BytesIO(self.merge()))


def headed(folder: Path, *returned: Any, **fields: object) -> Job:
    return Job(folder, "out.txt", list(returned), append_row_dataframe_header=True, **fields)


def test_the_header_is_there_once(tmp_path: Path) -> None:
    frames = [pd.DataFrame({"a": [number], "b c": [f"x {number}"]}) for number in range(5)]
    job = headed(tmp_path, *frames)
    assert job.merge() == b'a "b c"\n' + b"".join(b'%d "x %d"\n' % (n, n) for n in range(5))
    assert job.merge() == job.merge()
    assert job.notes == []


def test_columns_that_differ_are_put_where_they_belong_and_told(tmp_path: Path) -> None:
    job = headed(
        tmp_path, pd.DataFrame({"a": [1], "b": ["x, y"]}), pd.DataFrame({"b": [2], "c": ["q"], "a": [None]}), ["text"],
        append_row_separator=",",
    )  # fmt: skip
    assert job.merge() == b'a,b,c\n1,"x, y",\n,2,q\ntext\n'
    assert len(job.notes) == 2
    assert "2 different sets of columns" in job.notes[0]
    assert "1 mini-batch returned rows without column names" in job.notes[1]


def test_a_cell_may_be_as_long_as_it_is(tmp_path: Path) -> None:
    job = headed(tmp_path, pd.DataFrame({"a": [1]}), pd.DataFrame({"b": ["x" * 140_000], "a": [2]}))
    assert job.merge() == b"a b\n1 \n2 " + b"x" * 140_000 + b"\n"


def test_a_long_header_and_columns_of_one_name(tmp_path: Path) -> None:
    names = [f"column-{number:05d}" for number in range(1000)]
    job = headed(tmp_path, pd.DataFrame([range(1000)], columns=names), append_row_separator=",")
    assert job.merge().splitlines()[0].decode() == ",".join(names)
    twice = headed(tmp_path / "b", pd.DataFrame([[1, 2]], columns=["a", "a"]), pd.DataFrame([[3]], columns=["a"]))
    assert twice.merge() == b"a a\n1 2\n3 \n"


@settings(max_examples=25)
@given(
    tables=st.lists(
        st.dictionaries(
            st.sampled_from("abcd"), st.text(alphabet='ab ,"\n\r\u00e9', min_size=1, max_size=4), min_size=1
        ),
        min_size=1,
        max_size=5,
    )
)
def test_every_value_is_found_below_its_name(
    tmp_path_factory: pytest.TempPathFactory, tables: list[dict[str, str]]
) -> None:
    job = headed(tmp_path_factory.mktemp("job"), *(pd.DataFrame([table]) for table in tables), append_row_separator=",")
    # Rows end with line feeds; what the workers' own library has left unquoted is no end of one.
    text = io.StringIO(job.merge().decode().replace("\r", "R"), newline="\n")
    found = [{name: value for name, value in row.items() if value} for row in csv.DictReader(text)]
    assert found == [{name: value.replace("\r", "R") for name, value in table.items()} for table in tables]


def test_rows_that_are_placed_anew_keep_carriage_returns_in_quotes(tmp_path: Path) -> None:
    frames = [pd.DataFrame({"a": [1]}), pd.DataFrame({"b": ["one\rtwo", "x\r\ny"], "a": [2, 3]})]
    job = headed(tmp_path, *frames, append_row_separator=",")
    assert job.merge() == b'a,b\n1,\n2,"one\rtwo"\n3,"x\r\ny"\n'


def test_parquet_in_mini_batch_order_with_types_that_fit_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 3)
    job = Job(
        tmp_path, "out.parquet",
        [
            pd.DataFrame({"n": [1, 2], "empty": [None, None], "m": [1, 2]}),
            pd.DataFrame({"n": [1.5], "empty": ["x"], "m": ["text"]}),
            [],
            [{"n": 7, "new": [1, 2]}],
        ],
    )  # fmt: skip
    table = job.parquet()
    assert table.schema.field("n").type == pa.float64()
    assert table.to_pydict() == {
        "n": [1.0, 2.0, 1.5, 7.0],
        "empty": [None, None, "x", None],
        "m": ["1", "2", "text", None],
        "new": [None, None, None, [1, 2]],
    }
    assert job.merge() == job.merge()
    assert len(job.notes) == 1
    assert "m; in the output they are text" in job.notes[0]
    assert pyarrow.parquet.ParquetFile(job.target).num_row_groups == 2


FAR, EARLY = map(datetime.datetime.fromisoformat, ("9999-12-31", "2024-01-01"))
NEAR = pd.DataFrame({"a": pd.to_datetime(["2024-01-01"]).astype("datetime64[ns]")})
FINE = pd.DataFrame({"a": [pd.Timestamp(1_700_000_000_000_000_001)]})


@pytest.mark.parametrize(
    "returned, kind, values",
    [
        ([[{"a": 1}], [{"a": 0.5}]], "double", [1.0, 0.5]),
        ([[{"a": 2**53 + 1}], [{"a": 0.5}]], "string", ["9007199254740993", "0.5"]),
        ([[{"a": 0.5}], [{"a": 1}], [{"a": -(2**60) - 1}]], "string", ["0.5", "1", "-1152921504606846977"]),
        ([[{"a": 1}], [{"a": None}], pd.DataFrame({"a": [2]}).astype("uint64")], "int64", [1, None, 2]),
        (
            [[{"a": -1}], pd.DataFrame({"a": [2**64 - 1]}).astype("uint64")],
            "string", ["-1", "18446744073709551615"],
        ),
        ([[{"a": Decimal("1.5")}], [{"a": 0.1}]], "double", [1.5, 0.1]),
        ([[{"a": Decimal("1.0000000000000000001")}], [{"a": 0.1}]], "string", ["1.0000000000000000001", "0.1"]),
        ([[{"a": FAR}], NEAR], "timestamp[us]", [FAR, EARLY]),
        ([[{"a": FAR}], FINE], "string", ["9999-12-31 00:00:00.000000", "2023-11-14 22:13:20.000000001"]),
        ([[{"a": [2**53 + 1]}], [{"a": [0.5]}]], "string", ["[9007199254740993]", "[0.5]"]),
        (
            [[{"a": [Decimal("1.0000000000000000001")]}], [{"a": [0.1]}]],
            "string", ["[Decimal('1.0000000000000000001')]", "[0.1]"],
        ),
        ([[{"a": "x"}], [{"a": b"x"}], [{"a": uuid.UUID(int=7)}]], "string", ["x", "b'x'", str(uuid.UUID(int=7))]),
    ],
)  # fmt: skip
def test_a_value_is_never_another_one_for_the_sake_of_a_common_type(
    tmp_path: Path, returned: list[Any], kind: str, values: list[object]
) -> None:
    for name, order in (("forth", 1), ("back", -1)):
        job = Job(tmp_path / name, "out.parquet", returned[::order])
        table = job.parquet()
        assert str(table.schema.field("a").type) == kind
        assert table.column("a").to_pylist() == values[::order]
        assert len(job.notes) == (kind == "string")


@pytest.mark.parametrize("value, text", [
    ({}, "{}"), ([{}], "[{}]"), ({"a": {}, "b": 1}, "{'a': {}, 'b': 1}"), (pd.DateOffset(months=1), None),
])  # fmt: skip
def test_what_parquet_has_no_type_for_is_text(tmp_path: Path, value: object, text: str | None) -> None:
    job = Job(tmp_path, "out.parquet", [pd.DataFrame({"id": [1, 2], "meta": [value, None]}), [{"id": 3}]])
    table = job.parquet()
    assert table.schema.types == [pa.int64(), pa.string()]
    first, *others = table.column("meta").to_pylist()
    assert (first == text if text is not None else "months" in first, others) == (True, [None, None])
    assert "values that mini-batches have in meta; in the output they are text" in job.notes[0]


def test_fields_that_only_other_mini_batches_have_are_no_reason_for_text(tmp_path: Path) -> None:
    job = Job(tmp_path, "out.parquet", [[{"meta": {}}], [{"meta": {"a": 1}}]])
    assert job.parquet().to_pylist() == [{"meta": {"a": None}}, {"meta": {"a": 1}}]
    assert job.notes == []


@pytest.mark.parametrize("empty", [[{}, {}], [(), ()], pd.DataFrame(index=range(2))], ids=["dicts", "tuples", "table"])
def test_rows_without_a_column_are_rows(tmp_path: Path, empty: Any) -> None:
    job = Job(tmp_path / "some", "out.parquet", [empty, [{"a": 1}, {}], empty])
    assert job.parquet().to_pydict() == {"a": [None, None, 1, None, None, None]}
    job = Job(tmp_path / "all", "out.parquet", [empty, empty])
    assert job.parquet().to_pydict() == {"value": [None] * 4}


nested = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(returned=st.lists(st.lists(st.dictionaries(st.sampled_from("ab"), nested), max_size=3), max_size=3))
@example(returned=[[{"a": [datetime.date(2024, 1, 1), -800_000]}]])
def test_whatever_values_rows_have_each_of_them_is_there(
    tmp_path_factory: pytest.TempPathFactory, returned: list[list[dict[str, object]]]
) -> None:
    table = Job(tmp_path_factory.mktemp("job"), "out.parquet", returned).parquet()
    assert table.num_rows == sum(map(len, returned))
    for name in table.column_names:
        originals = [row.get(name) for rows in returned for row in rows]
        for original, value in zip(originals, table[name].to_pylist(), strict=True):
            assert is_kept(original, value, is_text=table.schema.field(name).type == pa.string())


def is_kept(original: object, value: object, *, is_text: bool) -> bool:
    """Return whether a Parquet file has a value as it was returned, or in a column of texts, as some text."""
    if original is None or original is pd.NaT or original is pd.NA or original != original:  # noqa: PLR0124 - NaN
        return value is None or value != value  # noqa: PLR0124 - NaN within a list
    if is_text:
        return isinstance(value, str) and (not isinstance(original, str) or value == original)
    if isinstance(original, (list, tuple)) and isinstance(value, list):
        pairs = zip(map(of_python, original), value, strict=True)
        return all(is_kept(each, element, is_text=False) for each, element in pairs)
    if isinstance(original, dict) and isinstance(value, dict):
        return all(is_kept(of_python(original.get(key)), each, is_text=False) for key, each in value.items())
    is_time = isinstance(original, datetime.datetime)
    is_of_its_kind = (
        isinstance(value, bool) == isinstance(original, bool) and isinstance(value, datetime.datetime) == is_time
    )
    return is_of_its_kind and original == value


ZONE = datetime.timezone(datetime.timedelta(hours=2))
DAY, NOON = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)  # noqa: DTZ001 - one without a zone
SINGLE = [
    DAY, NOON, NOON.replace(tzinfo=ZONE), datetime.time(5, 6), datetime.time(5, 6, tzinfo=ZONE), datetime.timedelta(1),
    5, 2**53 + 1, 2**70, 2.5, math.nan, True, Decimal("1.10"), "x", b"x", uuid.UUID(int=5), None, pd.NaT,
    pd.Timestamp("2024-01-01 05:00:00.000000001"), pd.Timedelta(1, "ns"), np.int64(5), np.float32(0.5), np.bool_(True),
    np.datetime64("2024-01-01T05:00:00.000000001"), np.timedelta64(1, "ns"),
]  # fmt: skip
NUMPY_TIMES = (np.datetime64, np.timedelta64)


@pytest.mark.parametrize("first", SINGLE, ids=repr)
def test_values_of_two_kinds_in_a_column_are_both_kept(tmp_path: Path, first: object) -> None:
    for number, second in enumerate(SINGLE):
        pair = [first, second]
        forms: dict[str, Any] = {"rows": pair, "column": pd.DataFrame({"value": pd.Series(pair, dtype=object)})}
        if not any(isinstance(value, NUMPY_TIMES) for value in pair):
            forms |= {"list": [{"value": pair}], "dict": [{"value": {"x": first}}, {"value": {"x": second}}]}
        for form, returned in forms.items():
            table = Job(tmp_path / f"{form}{number}", "out.parquet", [returned]).parquet()
            is_text = table.schema.field("value").type == pa.string()
            originals = [row["value"] for row in returned] if form in ("list", "dict") else pair
            for original, value in zip(originals, table["value"].to_pylist(), strict=True):
                assert is_kept(of_python(original), value, is_text=is_text), (form, pair, value)


def of_python(value: object) -> object:
    """A scalar of NumPy as a value of Python or pandas."""
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    return value.item() if isinstance(value, np.generic) else value


def test_a_segment_with_more_or_fewer_rows_than_were_decided_is_told(tmp_path: Path) -> None:
    job = Job(tmp_path, "out.parquet", [[{"a": 1}], [{"a": 2}, {"a": 3}]])
    log = tmp_path / "decisions.1"
    whole = list(read_outcomes(tmp_path))
    for rows in (1, 3):
        log.unlink()
        writer = DecisionWriter(tmp_path, 1)
        writer.add([msgspec.structs.replace(each, rows=rows) if each.mini_batch == 1 else each for each in whole])
        writer.close()
        with pytest.raises(CorruptLog, match=f"mini-batch 1 has 2 rows in parts/part1, but {rows} by its decision"):
            job.merge()
        assert names_in(job.target.parent) == []


def test_a_segment_that_is_not_what_was_committed_is_told(tmp_path: Path) -> None:
    for name, fields in (("out.parquet", {}), ("out.txt", {"append_row_dataframe_header": True})):
        job = Job(tmp_path / name, name, [pd.DataFrame({"a": [1, 2, 3]})], **fields)
        with (job.parts / "part0").open("r+b") as file:
            file.seek(-3, 2)
            file.write(b"xx")
        with pytest.raises(CorruptLog, match="mini-batch 0"):
            job.merge()
        assert not job.target.exists()


def test_the_ending_decides(tmp_path: Path) -> None:
    assert [row_format(name) for name in ("a.PARQUET", "a.jsonl", "a.ndjson", "a.csv", "a")] == [
        "parquet", "jsonl", "jsonl", "text", "text",
    ]  # fmt: skip
    assert Job(tmp_path, "out.jsonl", [["a"], [{"b": 1}]]).merge() == b'"a"\n{"b": 1}\n'
