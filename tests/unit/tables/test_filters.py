"""The step `filter`: which rows it leaves, whatever types the columns of a mini-batch have."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parallelrun_core.intake.reading import read_job
from tests.odd_files.reading import outcome_of

DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
TIMES = [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]  # noqa: DTZ001 - the zone is that of the column


def left(folder: Path, read: str, expression: str, size: str, *, is_arrow: bool) -> list[Any]:
    """The ids of the rows that a filter leaves of the table `data` in a folder, in a job of our own form."""
    inputs = {"data": {"path": str(folder / "data"), "transformations": [read, {"filter": expression}]}}
    spec = read_job({"entry_script": "e.py", "inputs": inputs, "mini_batch_size": size}, folder=folder).job
    job = folder / f"job{sum(1 for _ in folder.iterdir())}"
    outcome = outcome_of(spec, job, is_arrow=is_arrow)
    assert not outcome.refused
    assert not outcome.crashes
    return [row["id"] for row in outcome.rows]


@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_filter_drops_no_row_for_another_value_beside_it(tmp_path: Path, is_arrow: bool) -> None:
    (tmp_path / "data").mkdir()
    numbers = [*map(str, range(300)), "n/a", "", str(1 << 60), *map(str, range(5))]
    text = "id,x,day\n" + "".join(f"{at},{number},2024-01-0{1 + at % 3}\n" for at, number in enumerate(numbers))
    (tmp_path / "data" / "a.csv").write_text(f"{text}400,7,someday\n")
    at_least_five = [at for at, number in enumerate(numbers) if number.isdigit() and int(number) >= 5]
    others = [at for at, number in enumerate(numbers) if number != "7"]
    last_days = [at for at in range(len(numbers)) if at % 3 == 2]
    for size in ("1mb", "rows:50"):
        for expression, expected in (
            ('col("x") >= 5', [*at_least_five, 400]),
            ('col("x") * 2 > 9', [*at_least_five, 400]),
            ('col("x") != 7', others),  # a null is no 7, beside small numbers and beside large ones
            ('col("day") > datetime(2024, 1, 2)', last_days),
        ):
            assert left(tmp_path, "read_delimited", expression, size, is_arrow=is_arrow) == expected, expression


@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_filter_compares_days_and_times_of_any_zone(tmp_path: Path, is_arrow: bool) -> None:
    (tmp_path / "data").mkdir()
    table = pa.table({
        "id": [1, 2, 3], "day": DAYS, "time": pa.array(TIMES, pa.timestamp("us")),
        "utc": pa.array(TIMES, pa.timestamp("us", tz="UTC")),
        "berlin": pa.array(TIMES, pa.timestamp("us", tz="Europe/Berlin")),
        "far": [datetime.date(1500, 1, 1), DAYS[1], datetime.date(9999, 12, 31)],
        "kind": pa.array(["a", "b", "c"]).dictionary_encode(), "price": [Decimal("1.5"), None, Decimal("3.5")],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "data" / "a.parquet")
    for expression, expected in (
        *((f'col("{name}") {rule}', ids) for name in ("day", "time", "utc", "berlin") for rule, ids in (
            (">= datetime(2024, 1, 2)", [2, 3]), ("== datetime(2024, 1, 2)", [2]), ("!= datetime(2024, 1, 2)", [1, 3]),
        )),
        ('col("far") < datetime(2024, 1, 2)', [1]), ('col("far") > datetime(2024, 1, 2)', [3]),
        ('col("day") <= col("utc")', [1, 2, 3]), ('col("day") > "2024-01-02"', [3]), ('col("kind") > "a"', [2, 3]),
        ('col("price") > 2', [3]), ('col("price") != 3.5', [1, 2]),
    ):  # fmt: skip
        assert left(tmp_path, "read_parquet", expression, "1mb", is_arrow=is_arrow) == expected, expression


def test_a_calculation_that_no_value_allows_fails_its_mini_batch(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("id,x\n1,a\n2,b\n")
    steps = ["read_delimited", {"filter": "col('x') - 1 > 2"}]
    inputs = {"data": {"path": str(tmp_path / "data"), "transformations": steps}}
    spec = read_job({"entry_script": "e.py", "inputs": inputs, "mini_batch_size": "1mb"}, folder=tmp_path).job
    outcome = outcome_of(spec, tmp_path / "job")
    assert outcome.refused or outcome.crashes
