"""Avro files through a whole cluster: each row once and in order, whatever dies, and damage is told with its file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.folder.records import JobResult
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.integration.test_tables import DYING_TWICE

fastavro = pytest.importorskip("fastavro")
pytestmark = pytest.mark.integration

ROWS = 3000
SCHEMA = {"type": "record", "name": "Row", "fields": [
    {"name": "n", "type": "long"}, {"name": "store", "type": ["null", "string"]},
    {"name": "day", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]}  # fmt: skip
ECHO = textwrap.dedent("""
    def run(mini_batch, context):
        assert list(mini_batch.index) == list(range(len(mini_batch))) and len(mini_batch)
        assert mini_batch.dtypes.astype(str).tolist() == ["int64", "object", "datetime64[ms, UTC]"]
        return [f"{row.n} {row.store} {row.day:%Y-%m-%d}" for row in mini_batch.itertuples()]
""")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, slots=1) as running:
        yield running


def rows(numbers: range) -> list[dict[str, Any]]:
    return [{"n": n, "store": ("a", None, "é")[n % 3], "day": n * 86_400_000} for n in numbers]


def expected(numbers: range) -> list[str]:
    import pandas as pd

    return [f"{row['n']} {row['store']} {pd.Timestamp(row['day'], unit='ms'):%Y-%m-%d}" for row in rows(numbers)]


def write(path: Path, numbers: range, codec: str = "deflate") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, rows(numbers), codec=codec, sync_interval=700)
    return path


def run(cluster: Cluster, folder: Path, script: str = ECHO, **settings: Any) -> JobResult:
    table: dict[str, Any] = {"path": str(folder), "transformations": settings.pop("steps", ["read_avro"])}
    if (folder / "MLTable").exists():
        table = {"path": str(folder), "type": "mltable"}
    return cluster.result(cluster.submit(script, inputs={"data": table}, **settings))


@pytest.fixture(scope="module")
def folder(cluster: Cluster) -> Path:
    write(cluster.home / "avro" / "1.avro", range(2000))
    return write(cluster.home / "avro" / "2.avro", range(2000, ROWS), "null").parent


def test_a_worker_that_dies_in_the_middle_loses_no_row(cluster: Cluster, folder: Path) -> None:
    once = {"ONCE": str(cluster.home / "once")}
    result = run(cluster, folder, ECHO + DYING_TWICE, mini_batch_size="rows:200", environment_variables=once)
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == expected(range(ROWS))
    assert (result.progress.retried, result.progress.scheduled) == (2, ROWS // 200)
    assert (result.progress.items_scheduled, result.progress.items_done) == (ROWS, ROWS)


def test_an_mltable_file_names_what_is_read(cluster: Cluster) -> None:
    path = write(cluster.home / "mltable" / "a.avro", range(500))
    (path.parent / "MLTable").write_text(
        "type: mltable\npaths:\n- pattern: ./*.avro\ntransformations:\n- read_avro:\n    include_path_column: true\n"
        "- drop_columns: Path\n- skip: 10\n- take: 300\n"
    )
    result = run(cluster, path.parent, mini_batch_size=500)
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == expected(range(10, 310))
    assert result.progress.scheduled > 3


def test_rows_are_grouped_by_a_column(cluster: Cluster, folder: Path) -> None:
    result = run(cluster, folder, partition_keys=["store"])
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == [
        line for rest in (1, 0, 2) for line in expected(range(ROWS)) if int(line.split()[0]) % 3 == rest
    ]


def test_avro_file_that_is_cut_off_is_one_failed_mini_batch_and_the_others_go_on(cluster: Cluster) -> None:
    path = write(cluster.home / "damaged" / "a.avro", range(100))
    path.write_bytes(path.read_bytes()[:-5])
    write(path.with_name("b.avro"), range(100, 200))
    result = run(cluster, path.parent)
    assert result.state is JobState.COMPLETED

    assert result.progress.failed == 1
    assert set(expected(range(100, 200))) <= set(cluster.output(result))
    messages = (cluster.folder(result.job_id).logs / "job_result.txt").read_text()
    assert "a.avro" in messages
    assert "copy the file again" in messages or "block" in messages, messages
