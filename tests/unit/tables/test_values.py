"""Each value reaches run() as it stands in the file, is refused, or there is a warning; whole numbers stay exact."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_core.intake.reading import read_job
from parallelrun_core.mltable.input_plan import as_json
from parallelrun_core.mltable.plan import plan_inputs
from parallelrun_core.spec import JobSpec
from parallelrun_worker.tables.data_warnings import DataWarning, DataWarnings
from parallelrun_worker.tables.inference import infer_exactly
from parallelrun_worker.tables.table import Table
from parallelrun_worker.tables.values import int_column

SAMPLE = ["1", "22", "-3"] * 70
"""More rows than types are inferred from."""


class Reader:
    """Reads the files of a folder as a table, each with a try of one mini-batch."""

    def __init__(self, folder: Path, step: Any, *, form: str = "own", only: str = "*") -> None:
        self.folder = folder
        document = {
            "entry_script": "e.py",
            "inputs": {"rows": {"path": str(folder), "transformations": step if isinstance(step, list) else [step]}},
        }
        spec = read_job(document).job if form == "own" else JobSpec.parse(document)
        (plan,) = plan_inputs(spec)
        plan.sample = [str(path) for path in sorted(folder.glob(only))]
        plan.first_with_text = plan.sample[0]
        self._plan = json.loads(as_json([plan]))[0]
        self.warnings = DataWarnings()
        self._table = Table(
            self._plan,
            str(folder.parent / f"schema.{form}.{step if isinstance(step, str) else ''}.json"),
            self.warnings,
        )

    def frame(self, *pieces: tuple[str, int, int]) -> pd.DataFrame:
        """The rows of pieces (name, start, end), or of the first file."""
        wanted = pieces or ((Path(self._plan["sample"][0]).name, 0, -1),)
        frame: pd.DataFrame = self._table.read(
            [(str(self.folder / name), start, end, False, -1) for name, start, end in wanted]
        )
        return frame

    @property
    def told(self) -> list[tuple[str, str, int]]:
        """Kind, column and count of each warning."""
        return [(kind, column, times) for kind, _, column, _, _, times, *_ in json.loads(self.warnings.take())]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def csv_of(folder: Path, values: list[str], name: str = "a.csv") -> None:
    (folder / name).write_text("".join(f"{value}\n" for value in ["v", *values]))


def plain(column: Any) -> list[Any]:
    """Values as Python's own, None for null."""
    return [None if value is None or value is pd.NA or value != value else value for value in column.tolist()]  # noqa: PLR0124


whole = st.one_of(
    st.integers(-99, 99), st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([(1 << 53) + 1, -(1 << 53) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 10**399 + 7]),
)  # fmt: skip
columns = st.lists(st.one_of(whole, st.none()), min_size=1, max_size=8)


@given(
    values=columns,
    is_late=st.booleans(),
    form=st.sampled_from(["own", "azure"]),
    kind=st.sampled_from(["csv", "jsonl"]),
)
@example(values=[(1 << 53) + 1, None], is_late=True, form="azure", kind="csv")
@settings(deadline=None, max_examples=120)
def test_whole_numbers_of_texts_are_exact(
    tmp_path_factory: pytest.TempPathFactory, values: list[int | None], is_late: bool, form: str, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("whole") / "in"
    folder.mkdir()
    rows = [*([5] * 210 if is_late else []), *values, 7]
    if kind == "csv":
        (folder / "a.csv").write_text("v,w\n" + "".join(f"{'' if value is None else value},x\n" for value in rows))
        step: Any = "read_delimited"
    else:
        (folder / "a.jsonl").write_text("".join(json.dumps({"v": value}) + "\n" for value in rows))
        step = "read_json_lines"
    reader = Reader(folder, step, form=form)
    read = plain(reader.frame()["v"])
    assert [None if value is None else int(value) for value in read] == rows
    assert not reader.warnings


@given(first=columns, second=columns)
@example(first=[(1 << 53) + 1], second=[None])
@settings(deadline=None, max_examples=60)
def test_whole_numbers_of_several_files_in_one_mini_batch_are_exact(
    tmp_path_factory: pytest.TempPathFactory, first: list[int | None], second: list[int | None]
) -> None:
    folder = tmp_path_factory.mktemp("several") / "in"
    folder.mkdir()
    for name, values in (("a.jsonl", [5, *first]), ("b.jsonl", second)):
        (folder / name).write_text("".join(json.dumps({"v": value, name: 1}) + "\n" for value in values))
    read = plain(Reader(folder, "read_json_lines").frame(("a.jsonl", 0, -1), ("b.jsonl", 0, -1))["v"])
    assert [None if value is None else int(value) for value in read] == [5, *first, *second]


@given(values=columns, unsigned=st.booleans())
@settings(deadline=None, max_examples=60)
def test_whole_numbers_of_parquet_are_exact(
    tmp_path_factory: pytest.TempPathFactory, values: list[int | None], unsigned: bool
) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("parquet") / "in"
    folder.mkdir()
    low, high = (0, 1 << 64) if unsigned else (-(1 << 63), 1 << 63)
    fitting = [value if value is None or low <= value < high else 1 for value in values]
    table = pa.table({"v": pa.array(fitting, pa.uint64() if unsigned else pa.int64())})
    pq.write_table(table, folder / "a.parquet")
    read = plain(Reader(folder, "read_parquet").frame(("a.parquet", 0, -1))["v"])
    assert [None if value is None else int(value) for value in read] == fitting


@pytest.mark.parametrize("digits", [400, 4300, 4301, 100_000])
@pytest.mark.parametrize("form", ["own", "azure"])
def test_whole_numbers_of_very_many_digits_keep_them(folder: Path, digits: int, form: str) -> None:
    csv_of(folder, [*SAMPLE, "9" * digits])
    (folder / "b.jsonl").write_text('{"v": 1}\n' + '{"v": ' + "9" * digits + "}\n")
    for step, name in (("read_delimited", "a.csv"), ("read_json_lines", "b.jsonl")):
        reader = Reader(folder, step, form=form, only=name)
        value = reader.frame()["v"].iloc[-1]
        assert type(value) is (int if digits <= 4300 else str)
        assert Decimal(value) == Decimal("9" * digits)
        assert not reader.warnings


@pytest.mark.parametrize(
    "values, dtype",
    [
        ([1, 2], "int64"), ([1, None], "float64"), ([1 << 53, None], "float64"), ([(1 << 53) + 1, None], "Int64"),
        ([(1 << 63) - 1], "int64"), ([1 << 63], "object"), ([1 << 63, None], "object"), ([1, "x"], "object"),
        ([None], "float64"), ([], "float64"),
    ],
)  # fmt: skip
def test_whole_numbers_have_types_by_one_rule(values: list[Any], dtype: str) -> None:
    column = int_column(values)
    assert str(column.dtype) == dtype
    assert plain(column) == values


ODD = {"x": "mismatch", "007": "leading_zero", "+8": "sign", "1e5": "exponent", "3.7": "fraction"}


@pytest.mark.parametrize("odd, rule", ODD.items())
def test_odd_values_after_the_sample_are_kept_refused_or_told(folder: Path, odd: str, rule: str) -> None:
    csv_of(folder, [*SAMPLE, odd, "5"])
    kept = Reader(folder, "read_delimited")
    assert kept.frame()["v"].tolist()[-3:] == [-3, odd, 5]
    assert not kept.warnings
    null = Reader(folder, {"read_delimited": {"on_mismatch": None}})
    assert plain(null.frame()["v"])[-2:] == [None, 5]
    assert null.told == [("mismatch", "v", 1)]
    with pytest.raises(ValueError, match=rf"a\.csv: .*column 'v': '{odd.replace('+', '.')}' is not a whole number"):
        Reader(folder, {"read_delimited": {"on_mismatch": "error"}}).frame()
    azure = Reader(folder, "read_delimited", form="azure")
    value = plain(azure.frame()["v"])[-2]
    assert value == {"x": None, "007": 7, "+8": 8, "1e5": 100_000, "3.7": 3}[odd]
    assert azure.told == [(rule, "v", 1)]


ZEROS = ["00501", "10115", "00602"]
CHANGED = {
    "leading_zero": (ZEROS, [501, 10115, 602], 2),
    "sign": (["+8", "9"], [8, 9], 1),
    "exponent": (["1e5", "2e3"], [100_000.0, 2000.0], 2),
    "rounded": (["12345678901234567.89", "0.5"], [float(12345678901234568), 0.5], 1),
    "truth": (["0", "1", "1"], [False, True, True], 3),
    "ambiguous_day": (["01/02/2024", "03/04/2024"], [None, None], 2),
}


@pytest.mark.parametrize("rule", CHANGED)
def test_inference_that_would_change_values_gives_text_or_is_told(folder: Path, rule: str) -> None:
    texts, values, times = CHANGED[rule]
    csv_of(folder, texts)
    own = Reader(folder, "read_delimited")
    assert own.frame()["v"].tolist() == ([int(text) for text in texts] if rule == "truth" else texts)
    assert not own.warnings
    azure = Reader(folder, "read_delimited", form="azure")
    assert plain(azure.frame()["v"]) == values
    warnings = [DataWarning(*each) for each in json.loads(azure.warnings.take())]
    assert [(each.kind, each.column, each.times) for each in warnings] == [(rule, "v", times)]
    orders = [each in warnings[0].remedy for each in ("string", "%d/%m/%Y", "%m/%d/%Y")]
    assert orders == [True, *[rule == "ambiguous_day"] * 2]


@pytest.mark.parametrize("first, odd, by_azure", [
    ("2024-01-02", "9999-12-31", None), ("2024-01-02", "now", None), ("2024-01-02", " today", None),
    ("2024-01-02 03:04:05", "2016-12-31 23:59:60", None),
    ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05+02:00", pd.Timestamp("2024-01-02T01:04:05")),
])  # fmt: skip
def test_dates_that_a_column_of_times_does_not_have_are_kept_or_told(
    folder: Path, first: str, odd: str, by_azure: Any
) -> None:
    csv_of(folder, [first] * 210 + [odd])
    kept = Reader(folder, "read_delimited").frame()["v"].tolist()
    assert kept[-2:] == [pd.Timestamp(first).tz_localize(None), odd]
    azure = Reader(folder, "read_delimited", form="azure")
    assert plain(azure.frame()["v"])[-1] == by_azure
    assert azure.told == ([("mismatch", "v", 1)] if by_azure is None else [])


@pytest.mark.parametrize("time, kind", [
    ("2024-03-31T02:30:00+02:00", "string"), ("2024-03-31 02:30:00.5-0500", "string"),
    ("2016-12-31T23:59:60", "string"), ("2024-03-31T02:30:00Z", "datetime"),
    ("2024-03-31T02:30:00+00:00", "datetime"), ("2024-03-31 02:30:59", "datetime"),
])  # fmt: skip
def test_times_are_inferred_as_such_if_no_zone_and_no_second_is_lost(time: str, kind: str) -> None:
    assert infer_exactly([time, None, time])["kind"] == kind


def test_types_that_the_job_asks_for_are_given_without_a_warning(folder: Path) -> None:
    csv_of(folder, ZEROS)
    override = {"columns": "v", "column_type": "int"}
    for form in ("own", "azure"):
        reader = Reader(
            folder, {"read_delimited": {"infer_column_types": {"column_type_overrides": [override]}}}, form=form
        )
        assert reader.frame()["v"].tolist() == [501, 10115, 602]
        assert not reader.warnings


def test_values_of_json_lines_of_another_type_are_kept_refused_or_told(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"v": 1}\n' * 210 + '{"v": "x"}\n{"v": [1]}\n{"v": 1.5}\n')
    assert Reader(folder, "read_json_lines").frame()["v"].tolist()[-4:] == [1, "x", [1], 1.5]
    azure = Reader(folder, "read_json_lines", form="azure")
    assert plain(azure.frame()["v"])[-4:] == [1, None, None, 1.5]
    assert azure.told == [("mismatch", "v", 2)]
    with pytest.raises(ValueError, match="column 'v': 'x' is not"):
        Reader(folder, {"read_json_lines": {"on_mismatch": "error"}}).frame()


def test_values_of_json_lines_that_are_no_texts_are_kept_refused_or_told(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"v": "t"}\n' * 210 + '{"v": 12345678901234567890}\n{"v": [1, null]}\n')
    assert Reader(folder, "read_json_lines").frame()["v"].tolist()[-3:] == ["t", 12345678901234567890, [1, None]]
    azure = Reader(folder, "read_json_lines", form="azure")
    assert azure.frame()["v"].tolist()[-3:] == ["t", None, None]
    assert azure.told == [("mismatch", "v", 2)]
    with pytest.raises(ValueError, match="column 'v': '12345678901234567890' is not a text"):
        Reader(folder, {"read_json_lines": {"on_mismatch": "error"}}).frame()


def test_ordinary_tables_have_no_warnings(folder: Path) -> None:
    (folder / "a.csv").write_text(
        "id,name,price,flag,when\n"
        + "".join(f"{n},n{n},{n / 4},{n % 2 == 0},2024-01-{1 + n % 28:02}\n" for n in range(500))
    )
    for form in ("own", "azure"):
        reader = Reader(folder, "read_delimited", form=form)
        frame = reader.frame()
        texts = str(pd.Series([""]).dtype) if form == "own" else "object"
        assert [str(dtype) for dtype in frame.dtypes] == ["int64", texts, "float64", "bool", "datetime64[ns]"]
        assert not reader.warnings


@pytest.mark.parametrize("encoding", ["utf8", "utf16", "latin1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_odd_values_are_told_by_line_and_byte_in_any_range(folder: Path, encoding: str, newline: str) -> None:
    lines = ["v,ü", *(f"{number},é" for number in range(400)), "x,ß", "1,a", "y,b"]
    codec = {"utf8": "utf-8", "utf16": "utf-16", "latin1": "cp1252"}[encoding]
    text = newline.join(lines) + newline
    (folder / "a.csv").write_bytes(text.encode(codec))
    size = len(text.encode(codec))
    for cut in (2, size // 3, size // 2, size - 40):
        reader = Reader(folder, {"read_delimited": {"encoding": encoding, "on_mismatch": "null"}})
        reader.frame(("a.csv", 0, cut))
        reader.frame(("a.csv", cut, size))
        ((kind, file, column, what, _, times, _, line, offset),) = json.loads(reader.warnings.take())
        assert (kind, Path(file).name, column, times, line) == ("mismatch", "a.csv", "v", 2, 402)
        assert what.startswith("'x' is not a whole number")
        assert text.encode(codec)[offset:].decode("utf-16-le" if encoding == "utf16" else codec).startswith("x,")
        with pytest.raises(ValueError, match=r"a\.csv: line 402, column 'v': 'x' is not a whole number"):
            Reader(folder, {"read_delimited": {"encoding": encoding, "on_mismatch": "error"}}).frame(
                ("a.csv", cut, size)
            )
