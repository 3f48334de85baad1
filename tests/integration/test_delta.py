"""Delta tables through a whole cluster: the live rows of the version that is asked for, each once."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pytest

from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ECHO = textwrap.dedent("""
    def run(mini_batch, context):
        assert list(mini_batch.columns) == ["n", "store", "year"], mini_batch.columns
        assert mini_batch.dtypes.astype(str).tolist() == ["int64", "object", "int64"], mini_batch.dtypes
        keys = ",".join(map(str, context.partition_key_value.values()))
        return [f"{keys}|{row.n} {row.store} {row.year}" for row in mini_batch.itertuples()]
""")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, slots=2) as running:
        yield running


def rows(numbers: range) -> pd.DataFrame:
    stores = [("a b", "c/d", "é")[number % 3] for number in numbers]
    return pd.DataFrame({"n": numbers, "store": stores, "year": [2020 + number % 2 for number in numbers]})


@pytest.fixture(scope="module")
def table(cluster: Cluster) -> Path:
    """Version 0: 30 rows; 1: 30 more; 2: without those of 2021 and without 0; 3: ten others in their place."""
    folder = cluster.home / "delta"
    deltalake.write_deltalake(str(folder), rows(range(30)), partition_by=["year", "store"])
    deltalake.write_deltalake(str(folder), rows(range(30, 60)), mode="append")
    deltalake.DeltaTable(str(folder)).delete("year = 2021 OR n = 0")
    deltalake.write_deltalake(str(folder), rows(range(100, 110)), mode="overwrite")
    (folder / "MLTable").write_text(
        "type: mltable\npaths:\n- folder: ./\ntransformations:\n- read_delta_lake:\n    version_as_of: 2\n"
    )
    return folder


def lines(cluster: Cluster, folder: Path, *, keys: tuple[str, ...] = (), **options: Any) -> list[str]:
    """What the rows of a job with this table are; options of the step that reads, or the MLTable file's."""
    steps = {"transformations": [{"read_delta_lake": options}]} if options else {"type": "mltable"}
    settings: dict[str, Any] = {"partition_keys": list(keys)} if keys else {}
    job = cluster.submit(ECHO, inputs={"data": {"path": str(folder), **steps}}, **settings)
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    return cluster.output(result)


def expected(*numbers: int) -> list[str]:
    frames = [rows(range(number, number + 1)) for number in numbers]
    return sorted(f"|{row.n} {row.store} {row.year}" for frame in frames for row in frame.itertuples())


def test_each_version_is_what_it_was(cluster: Cluster, table: Path) -> None:
    assert sorted(lines(cluster, table, version_as_of=0)) == expected(*range(30))
    assert sorted(lines(cluster, table, version_as_of=1)) == expected(*range(60))
    now = datetime.now(UTC).isoformat()
    assert sorted(lines(cluster, table, timestamp_as_of=now)) == expected(*range(100, 110))


def test_of_deleted_rows_none_comes_although_their_files_are_there(cluster: Cluster, table: Path) -> None:
    live = deltalake.DeltaTable(str(table), version=2).file_uris()
    assert len(live) < len(list(table.rglob("*.parquet")))
    assert sorted(lines(cluster, table)) == expected(*range(2, 60, 2))


def test_rows_of_a_version_by_keys(cluster: Cluster, table: Path) -> None:
    """By a column that partitions the table on disk and by one that doesn't."""
    found = lines(cluster, table, keys=("store",), version_as_of=1)
    assert [line.partition("|")[0] for line in found] == ["a b"] * 20 + ["c/d"] * 20 + ["é"] * 20
    assert sorted("|" + line.partition("|")[2] for line in found) == expected(*range(60))
    found = lines(cluster, table, keys=("n",), version_as_of=2)
    numbered = [line[1:].split()[0] + line for line in expected(*range(2, 60, 2))]
    assert found == sorted(numbered, key=lambda line: line.partition("|")[0])


def test_a_version_that_is_not_there_fails_the_job_and_says_so(cluster: Cluster, table: Path) -> None:
    steps = [{"read_delta_lake": {"version_as_of": 9}}]
    job = cluster.submit(ECHO, inputs={"data": {"path": str(table), "transformations": steps}})
    failure = cluster.result(job).failure
    assert failure is not None
    assert failure.code == "INVALID_INPUT"
    assert "not one of its versions" in failure.summary
