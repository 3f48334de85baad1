"""Rows grouped by the values of any columns: every row once, groups whole and in order, values as run() gets them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_worker.shuffle import sorting
from parallelrun_worker.shuffle.keys import sortable, texts_of
from parallelrun_worker.tables.stacking import stacked
from tests.odd_files.reading import outcome_of, own_job
from tests.unit.tables.cutting import Cut, folder_with, values
from tests.unit.tables.grouping import Grouped

TEXT_ONLY = {"infer_column_types": False}
sizes = st.one_of(st.integers(1, 60), st.just(1 << 20))
numbers = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1]))
words = st.one_of(st.none(), st.sampled_from(["a", "A", "a b", ""]), st.text("a\"'\n,é\0\u2028", max_size=3))


def as_csv(rows: list[tuple[Any, ...]], *, header: list[str]) -> bytes:
    """With quotes around all that is not null, so that an empty text is one."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue().replace('"\x1d"', "").encode()


def order_of(keys: tuple[str | None, ...]) -> list[tuple[bool, str]]:
    return [(key is not None, key or "") for key in keys]


def test_files_that_are_damaged_are_one_failed_group_each_beside_the_others() -> None:
    text = {
        "a.csv": b"k,v\n1,x\n2,y\n",
        "b.csv": b"k,v\n1,\xff\xe4\n",
        "c.csv": b"k,v\n2,z\n",
        "d.csv": b"k,v\n3,\xff\n",
    }
    found = Grouped(folder_with(text), ["read_delimited"], ["k"], keep_errors=True)
    assert {keys: values(frame) for keys, frame in found.groups} == {("1",): [(1, "x")], ("2",): [(2, "y"), (2, "z")]}
    assert [name for error in found.errors for name in text if name in error] == ["b.csv", "d.csv"]


AZURE = {"inference": "azure", "on_mismatch": "null", "columns_by": "position"}
MANY = "".join(f"{n % 3},{n}\n" for n in range(300))
WARNED: dict[str, tuple[dict[str, str], list[Any], list[str]]] = {
    "a value that doesn't fit": (
        {"a.csv": f"k,v\n{MANY}1,n/a\n"}, [{"read_delimited": AZURE}], ["mismatch a.csv v 302"],
    ),
    "one in JSON": (
        {"a.jsonl": "".join(f'{{"k": 1, "v": {n}}}\n' for n in range(300)) + '{"k": 2, "v": "n/a"}\n'},
        [{"read_json_lines": {"on_mismatch": "null"}}], ["mismatch a.jsonl v 301"],
    ),
    "leading zeros": ({"a.csv": "k,v\nx,007\n"}, [{"read_delimited": AZURE}], ["leading_zero a.csv v 2"]),
    "another header": (
        {"a.csv": "k,v\n1,2\n", "b.csv": "v,k\n2,1\n"}, [{"read_delimited": AZURE}], ["header b.csv  0"],
    ),
    "another delimiter": (
        {"a.csv": "k,v\n1,2\n", "b.csv": "k;v\n1;2\n2;3\n"}, ["read_delimited"], ["delimiter b.csv  0"],
    ),
    "a code page": ({"a.csv": "k,v\nx,é\n"}, [{"read_delimited": {"encoding": "latin1"}}], ["code_page a.csv  0"]),
    "a header between rows": (
        {"a.csv": f"k,v\n{MANY}k,v\n1,2\n"}, ["read_delimited"],
        ["joined a.csv  302", "mismatch a.csv k 302", "mismatch a.csv v 302"],
    ),
    "longer and shorter rows": (
        {"a.csv": "k,v\n1,2\n1\n\n2,3,4\n"}, ["read_delimited"], ["long_rows a.csv  5", "short_rows a.csv  3"],
    ),
    "a longer row that a filter leaves out": (
        {"a.csv": f"k,v\n{MANY}9,1,2\n"}, ["read_delimited", {"filter": "col('k') < 9"}], ["long_rows a.csv  302"],
    ),
    "an open quote": ({"a.csv": 'k,v\n1,"x\n2,y\n'}, ["read_delimited"], ["open_quote a.csv  2"]),
    "a conversion, and a filter that leaves its row out": (
        {"a.csv": "k,v\n1,x\n2,3\n"},
        [
            "read_delimited", {"convert_column_types": [{"columns": "v", "column_type": "int"}]},
            {"filter": "col('v') > 0"},
        ],
        ["conversion a.csv v 0"],
    ),
}  # fmt: skip


def told(found: Iterable[DataWarning], folder: Path) -> list[str]:
    return sorted(f"{each.kind} {Path(each.file).relative_to(folder)} {each.column} {each.line}" for each in found)


@pytest.mark.parametrize("case", WARNED)
def test_rows_that_are_grouped_are_warned_of_as_the_rows_of_any_table(case: str) -> None:
    files, steps, expected = WARNED[case]
    folder = folder_with(files)
    cut, grouped = Cut(folder, steps), Grouped(folder, steps, ["k"] if case != "an open quote" else ["v"])
    of_table = msgspec.json.decode(cut.table.format.warnings.take(), type=list[DataWarning])
    assert told(of_table, folder) == expected
    assert grouped.warnings == of_table
    assert not grouped.table.format.warnings, "who reads a group warns of its rows again"
    assert not grouped.errors


def test_a_leader_tells_of_the_rows_that_it_has_had_grouped(tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    (folder / "a.csv").write_text("k,v\nx,007\ny,8\n")
    spec = own_job(folder, {"read_delimited": AZURE}, "1mb")
    plain = outcome_of(spec, tmp_path / "plain")
    by_keys = spec.model_copy(update={"partition_keys": ("k",), "mini_batch_size": None})
    grouped = outcome_of(by_keys, tmp_path / "grouped")
    assert (grouped.refused, grouped.rows) == ([], plain.rows)
    assert grouped.warnings == plain.warnings
    assert "'007' was read as 7" in grouped.warnings[0]


@given(rows=st.lists(st.tuples(numbers, words), max_size=25), files=st.integers(1, 3), size=sizes)
@example(rows=[(None, "a"), (2**53, "a"), (2**53 + 1, "b"), (3, "a")], files=1, size=1 << 20)
@settings(deadline=None, max_examples=60)
def test_each_row_is_once_in_the_group_of_its_keys(
    rows: list[tuple[int | None, str | None]], files: int, size: int
) -> None:
    null = "\x1d"
    numbered = [(null if n is None else n, null if w is None else w, at) for at, (n, w) in enumerate(rows)]
    content = {
        f"{number}.csv": as_csv(numbered[number::files], header=["n", "w", "at"]) for number in range(files)
    }  # fmt: skip
    overrides = [{"columns": column, "column_type": kind} for column, kind in (("n", "int"), ("at", "int"))]
    overrides.append({"columns": "w", "column_type": "string"})
    types = {"infer_column_types": {"column_type_overrides": overrides}}
    step = {"read_delimited": {"support_multi_line": True, **types}}
    found = Grouped(folder_with(content), [step], ["w", "n"], size)
    expected: dict[tuple[str | None, ...], list[int]] = {}
    for at in [at for number in range(files) for at in range(number, len(rows), files)]:
        number_of, word = rows[at]
        expected.setdefault((word, None if number_of is None else str(number_of)), []).append(at)
    assert {keys: frame["at"].tolist() for keys, frame in found.frames.items()} == expected
    assert list(found.frames) == sorted(expected, key=order_of)
    for (w, n), frame in found.frames.items():
        assert list(frame.index) == list(range(len(frame)))
        assert [value if isinstance(value, str) else None for value in frame["w"]] == [w] * len(frame)
        assert frame["n"].isna().all() if n is None else frame["n"].tolist() == [int(n)] * len(frame)
        assert frame["n"].dtype == ("float64" if n is None else "int64")


@given(content=st.text('ab"\r\n, é', max_size=80), multi_line=st.booleans(), size=sizes)
@example(content='a,b\n"x,2\nz,3\ny",4\n', multi_line=False, size=3)
@example(content='a,"b\na,"c"d\nb,"e\na,f', multi_line=True, size=1 << 20)
@example(content='a,x"y,"2\na,z"\nb,1\na,"', multi_line=True, size=1 << 20)
@example(content='a"\n\r"""""', multi_line=True, size=1)
@settings(deadline=None, max_examples=120)
def test_whatever_text_a_table_is_made_of_its_groups_are_its_rows(content: str, multi_line: bool, size: int) -> None:
    options = {"support_multi_line": multi_line, "header": "no_header", **TEXT_ONLY}
    folder = folder_with({"table": content})
    whole = Cut(folder, [{"read_delimited": options}])
    if multi_line and content.count('"') % 2 and size < len(content):
        return  # a quote that is never closed means something else in a part than in the whole
    if not whole.rows():
        return
    grouped = Grouped(folder, [{"read_delimited": options}], ["Column1"], size)
    expected: dict[tuple[str | None, ...], list[tuple[Any, ...]]] = {}
    for row in whole.rows():
        expected.setdefault((row[0],), []).append(row)
    width = len(whole.frame.columns)
    found = {
        keys: [row + (None,) * (width - len(row)) for row in values(frame)] for keys, frame in grouped.frames.items()
    }
    assert found == expected


json_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.integers(2**53, 2**53 + 2),
    st.sampled_from(["a", "A", "1", "True"]),
)


@given(
    objects=st.lists(st.dictionaries(st.sampled_from("ab"), json_values, min_size=1), min_size=1, max_size=15),
    size=sizes,
)
@settings(deadline=None, max_examples=40)
def test_json_lines_of_any_types_are_grouped(objects: list[dict[str, Any]], size: int) -> None:
    objects = [{"a": None, "at": -1}, *({**each, "at": at} for at, each in enumerate(objects))]
    folder = folder_with({"table": "".join(json.dumps(each) + "\n" for each in objects)})
    found = Grouped(folder, ["read_json_lines"], ["a"], size)
    assert sorted(at for _, frame in found.groups for at in frame["at"]) == list(range(-1, len(objects) - 1))
    fits = Cut(folder, ["read_json_lines"]).frame["a"].notna()  # what isn't of the column's kind is null
    kinds = {type(value) for value, fit in zip((each.get("a") for each in objects), fits, strict=True) if fit}
    assert len({(type(v), v) for v, fit in zip([each.get("a") for each in objects], fits, strict=True) if fit}) == sum(
        keys != (None,) for keys, _ in found.groups
    ), kinds
    for _, frame in found.groups:
        assert len({repr(value) for value in frame["a"]}) == 1


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    times = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"]).as_unit("ms")
    frame = pd.DataFrame(
        {
            "id": pd.array([2**53 + 1, None, 2**53 + 1], dtype="Int64"), "small": pd.Series([1, 2, 3], dtype="int8"),
            "when": times, "zone": times.tz_localize("Europe/Berlin"), "kind": pd.Categorical(["x", "y", "x"]),
            "list": [[1], [], [2, 3]], "raw": [b"\0", b"", b"a"],
            "cents": [Decimal("1.10"), Decimal("2.20"), Decimal("1.10")],
        }
    )  # fmt: skip
    frame.to_parquet(tmp_path / "a.parquet")
    frame.iloc[::-1].to_parquet(tmp_path / "b.parquet", row_group_size=1)
    whole = Cut(tmp_path, ["read_parquet"], "rows:3").frames[0]
    (null_keys, null), (keys, found) = Grouped(tmp_path, ["read_parquet"], ["id"]).groups
    assert (null_keys, keys) == ((None,), (str(2**53 + 1),))
    assert found["id"].tolist() == [2**53 + 1] * 4
    assert found["small"].tolist() == [1, 3, 3, 1]
    assert [list(each) for each in found["list"]] == [[1], [2, 3], [2, 3], [1]]
    for name in frame.columns.drop("id"):
        assert found[name].dtype == whole[name].dtype, name
        expected = [whole[name].tolist()[at] for at in (0, 2, 2, 0)]
        assert list(map(str, found[name])) == list(map(str, expected)), name
    assert len(null) == 2
    for name in ("small", "when", "zone", "kind", "cents", "raw"):
        assert Grouped(tmp_path, ["read_parquet"], [name]).count == (3 if name in ("small", "raw") else 2), name


def test_parquet_files_of_other_columns_and_types_come_together() -> None:
    first = {"k": ["x", "y"], "id": pa.array([2**60 + 1, 3]), "day": [date(2024, 1, 2)] * 2, "one": [1, 2]}
    others: list[dict[str, Any]] = [
        {**first, "id": pa.array([5, None], pa.int32())}, {**first, "id": ["a", "b"]}, {**first, "one": pa.nulls(2)},
        {**first, "k": pa.array(["x", "y"], pa.large_string()), "day": [datetime(2024, 1, 2, 3)] * 2},  # noqa: DTZ001
        {"two": [1, 2], "k": ["x", "y"]},
    ]  # fmt: skip
    for other in others:
        files, rows = {}, []
        for name, columns in (("a.parquet", first), ("b.parquet", other)):
            sink, table = io.BytesIO(), pa.table(columns)
            pq.write_table(table, sink)
            files[name] = sink.getvalue()
            rows += [row for row in table.to_pylist() if row["k"] == "x"]
        found = Grouped(folder_with(files), ["read_parquet"], ["k"])
        frame = found.frames["x",]
        assert [dict(zip(frame.columns, row, strict=True)) for row in values(frame)] == [
            {name: row.get(name) for name in frame.columns} for row in rows
        ]  # fmt: skip
        by_arrow = stacked([pa.table(first), pa.table(other)])
        assert by_arrow.schema.field("k").type in (pa.string(), pa.large_string())
        assert by_arrow.to_pylist()[0]["id"] in (2**60 + 1, str(2**60 + 1))
        if other.get("day") == [datetime(2024, 1, 2, 3)] * 2:  # noqa: DTZ001 - see above
            assert by_arrow.column("day").to_pylist()[-1] == "2024-01-02T03:00:00+00:00"  # and no day without its hour
            assert by_arrow.schema.field("id").type == pa.int64()


@pytest.mark.parametrize("parts", [{}, {"_PART_BYTES": 3}])
def test_the_grouping_is_the_same_bytes_each_time(parts: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    content = "k,n\n" + "".join(f"{at % 7},{at}\n" for at in range(500))
    folder = folder_with({"table": content})
    once = Grouped(folder, ["read_delimited"], ["k"], 100)
    for name, value in parts.items():
        monkeypatch.setattr(sorting, name, value)
    assert Grouped(folder, ["read_delimited"], ["k"], 100).rows == once.rows
    assert [keys for keys, _ in once.groups] == [(str(key),) for key in range(7)]


def test_rows_are_dropped_and_counted_before_they_are_grouped() -> None:
    content = "k,n\n" + "".join(f"{'ab'[at % 2]},{at}\n" for at in range(100))
    folder = folder_with({"table": content})
    steps = ["read_delimited", {"filter": 'col("n") >= 10'}, {"skip": 3}, {"take": 5}]
    frames = Grouped(folder, steps, ["k"], 40).frames
    assert {keys: frame["n"].tolist() for keys, frame in frames.items()} == {("a",): [14, 16], ("b",): [13, 15, 17]}
    frames = Grouped(folder, ["read_delimited", {"skip": 3}, {"take": 4}], ["k"], 40).frames
    assert {keys: frame["n"].tolist() for keys, frame in frames.items()} == {("a",): [4, 6], ("b",): [3, 5]}
    sample = ["read_delimited", {"take_random_sample": {"probability": 0.3, "seed": 5}}]
    drawn = sorted(n for frame in Grouped(folder, sample, ["k"], 40).frames.values() for n in frame["n"])
    assert 10 < len(drawn) < 60
    assert drawn == sorted(n for frame in Grouped(folder, sample, ["k"], 40).frames.values() for n in frame["n"])


def test_columns_that_come_from_paths_stay_with_their_rows() -> None:
    text = {f"{store}/{month}.csv": f"k,n\nx,{number}\ny,{number}\n" for number, (store, month) in enumerate(
        [("s1", "2024-01"), ("s1", "2024-02"), ("s2", "2024-01")])}  # fmt: skip
    steps = [
        {"read_delimited": {"include_path_column": True}},
        {"filter": 'col("k") == "x"'},
        {"extract_columns_from_partition_format": "{store}/{month:yyyy-MM}.csv"},
    ]
    frames = Grouped(folder_with(text), steps, ["store", "k"]).frames
    assert list(frames) == [("s1", "x"), ("s2", "x")]
    assert frames["s1", "x"]["month"].dt.month.tolist() == [1, 2]
    assert [path.rpartition("/")[2] for path in frames["s1", "x"]["Path"]] == ["2024-01.csv", "2024-02.csv"]
    assert frames["s1", "x"]["n"].tolist() == [0, 1]


def test_files_with_headers_of_their_own_and_other_encodings_come_together() -> None:
    folder = folder_with(
        {"1.csv": "k,n\né,1\n".encode("utf-16"), "2.csv": "n,k,z\n2,é,5\n3,x,6\n".encode("utf-16-be")}
    )  # fmt: skip
    options = {"encoding": "utf16", "header": "all_files_different_headers"}
    with pytest.raises(ValueError, match="k"):
        Grouped(folder, [{"read_delimited": options}], ["q"])
    (folder / "2.csv").write_bytes("n,k,z\n2,é,5\n3,x,6\n".encode("utf-16"))
    frames = Grouped(folder, [{"read_delimited": options}], ["k"]).frames
    assert list(frames) == [("x",), ("é",)]
    assert frames[("é",)]["n"].tolist() == [1, 2]


def test_dates_truth_values_and_numbers_as_keys() -> None:
    folder = folder_with({"t": "d,b,f\n2024-01-02,true,1.0\n2024-01-02,false,1\n,true,1.5\n2024-01-03,,\n"})
    named = {key: [keys[0] for keys, _ in Grouped(folder, ["read_delimited"], [key]).groups] for key in ("d", "b", "f")}
    assert named == {
        "d": [None, "2024-01-02T00:00:00+00:00", "2024-01-03T00:00:00+00:00"],
        "b": [None, "False", "True"],
        "f": [None, "1", "1.5"],
    }


def test_what_rows_cannot_be_grouped_by_is_told() -> None:
    folder = folder_with({"t": '{"a": [1], "b": 1}\n'})
    with pytest.raises(ValueError, match=r"no column 'c' to group by; the table has a, b"):
        Grouped(folder, ["read_json_lines"], ["c"])
    with pytest.raises(ValueError, match=r"has a; its path has it: .*: 'region=\{region\}/y=\{y\}/\*'$"):
        Grouped(folder_with({"d/region=eu/y=1/t": '{"a": 1}\n'}), ["read_json_lines"], ["region"])
    with pytest.raises(ValueError, match=r"'a' holds lists or objects"):
        Grouped(folder, ["read_json_lines"], ["a"])


@given(rows=st.lists(st.tuples(words, words), max_size=8))
def test_bytes_of_keys_sort_as_the_keys_do(rows: list[tuple[str | None, str | None]]) -> None:
    encoded = {b"".join(sortable(value) for value in row): row for row in rows}
    assert len(encoded) == len(set(rows))
    assert [tuple(texts_of(key, 2)) for key in sorted(encoded)] == sorted(set(rows), key=order_of)


def test_times_of_a_zone_are_told_in_utc() -> None:
    from parallelrun_worker.tables.steps import text_of

    assert text_of(pd.Timestamp(datetime(2024, 1, 2, 3, tzinfo=UTC)).tz_convert("Europe/Berlin")) == (
        "2024-01-02T03:00:00+00:00"
    )
