"""Tables in object stores are the same as on disk: cuts, rows, types and keys; and only what is needed is read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.storage.conftest import Bucket
from tests.integration.storage.tables import Job, seen

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("object-stores")]

Make = Callable[..., Job]


@pytest.fixture
def job(bucket: Bucket, tmp_path: Path) -> Iterator[Make]:
    made: list[Job] = []

    def make(path: str, *steps: Any, **options: Any) -> Job:
        given = {"path": path, **({"transformations": steps} if steps else {"type": "mltable"})}
        made.append(Job(tmp_path / f"job-{len(made)}", given, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def avro(rows: int) -> bytes:
    import fastavro

    schema = {
        "type": "record", "name": "row",
        "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
    }  # fmt: skip
    records = [{"number": number, "text": None if number % 7 == 0 else f"row {number}"} for number in range(rows)]
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), records, sync_interval=2000)
    return file.getvalue()


def parquet(rows: int, group: int = 1000) -> bytes:
    file = io.BytesIO()
    columns = {"number": range(rows), "text": [f"row {n}" for n in range(rows)], "half": [n / 2 for n in range(rows)]}
    pq.write_table(pa.table(columns), file, row_group_size=group)
    return file.getvalue()


def lines(rows: range, width: int = 30) -> str:
    return "".join(f"{number},{'x' * (number % width)},2020-01-{1 + number % 28:02}\n" for number in rows)


HEADER = "number,text,day\n"
CSV = HEADER + lines(range(3000))
MULTI_LINE = "a,b\n" + "".join(f'{number},"one\ntwo"\n' for number in range(2000))
OBJECTS: list[dict[str, object]] = [{"number": n, **({"odd": True} if n % 2 else {})} for n in range(3000)]
JSON_LINES = "".join(json.dumps(each) + "\n" for each in OBJECTS)
LONG_RECORD = HEADER + "1,a,2020-01-01\n2," + "y" * 300_000 + ",2020-01-02\n" + lines(range(3, 3000))
LONG_HEADER = ",".join(f"column{number}" for number in range(3000)) + "\n" + (",".join("1" * 3000) + "\n") * 20
EXTRACT = {"extract_columns_from_partition_format": "k={k}/{*}"}


def delimited(**options: object) -> dict[str, object]:
    return {"read_delimited": options}


Table = tuple[Mapping[str, str | bytes], list[Any], dict[str, Any]]
TABLES: dict[str, Table] = {
    "csv": ({"a.csv": CSV, "d/b.csv": HEADER + lines(range(3000, 4000))}, ["read_delimited"], {"size": "20kb"}),
    "csv, the first header": (
        {"a.csv": "", "b.csv": CSV, "c.csv": lines(range(3000, 4000))}, [delimited(header="from_first_file")],
        {"size": "10kb"},
    ),
    "csv, other headers": (
        {"a.csv": "a,b\n1,2\n", "b.csv": "b,c\n3,x\n"}, [delimited(header="all_files_different_headers")], {},
    ),
    "csv, no header": ({"a.csv": lines(range(3000))}, [delimited(header="no_header")], {"size": "10kb"}),
    "csv in utf-16": ({"a.csv": CSV.encode("utf-16")}, [delimited(encoding="utf16")], {"size": "10kb"}),
    "csv with a mark": ({"a.csv": CSV.encode("utf-8-sig")}, ["read_delimited"], {"size": "10kb"}),
    "csv over lines": ({"a.csv": MULTI_LINE}, [delimited(support_multi_line=True)], {"size": "4kb"}),
    "csv by rows": ({"a.csv": CSV}, ["read_delimited", {"skip": 10}, {"take": 2000}], {"size": "rows:300"}),
    "csv, a long record": ({"a.csv": LONG_RECORD}, ["read_delimited"], {"size": "10kb"}),
    "csv, a long header": ({"a.csv": LONG_HEADER}, ["read_delimited"], {"size": "10kb"}),
    "csv, a filter": ({"a.csv": CSV}, ["read_delimited", {"filter": "col('number') < 2500"}], {"size": "10kb"}),
    "csv by its paths": (
        {"k=1/a.csv": CSV, "k=2/b.csv": HEADER + lines(range(99)), "k=1/c.csv": HEADER + lines(range(7))},
        [EXTRACT, "read_delimited"], {"keys": ["k"]},
    ),
    "csv by its values": ({"a.csv": CSV}, ["read_delimited"], {"keys": ["day"]}),
    "json lines": ({"a.jsonl": JSON_LINES}, ["read_json_lines"], {"size": "8kb"}),
    "parquet": ({"a.parquet": parquet(50_000), "b.parquet": parquet(100)}, ["read_parquet"], {"size": "100kb"}),
    "parquet, few columns": (
        {"a.parquet": parquet(50_000)}, ["read_parquet", {"keep_columns": ["number", "half"]}], {"size": "rows:1500"},
    ),
    "parquet, dropped columns": (
        {"a.parquet": parquet(5_000)}, ["read_parquet", {"drop_columns": {"pattern": "^T", "ignore_case": True}}],
        {"size": "20kb"},
    ),
    "parquet by its values": (
        {"a.parquet": parquet(200)}, ["read_parquet", {"keep_columns": ["number", "text"]}], {"keys": ["text"]},
    ),
    "parquet by its paths": (
        {"k=1/a.parquet": parquet(3000), "k=2/b.parquet": parquet(10)}, ["read_parquet", EXTRACT], {"keys": ["k"]},
    ),
    "avro": ({"a.avro": avro(5000), "b.avro": avro(10)}, ["read_avro"], {"size": "8kb"}),
    "avro by rows": ({"a.avro": avro(5000)}, ["read_avro", {"skip": 5}], {"size": "rows:333"}),
    "avro by its values": ({"a.avro": avro(50)}, ["read_avro"], {"keys": ["text"]}),
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_the_same_as_on_disk(bucket: Bucket, job: Make, tmp_path: Path, table: str) -> None:
    files, steps, options = TABLES[table]
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        bucket.put(f"t/{name}", data)
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(data)

    there, here = job(bucket.url("t"), *steps, **options), job(str(tmp_path / "t"), *steps, **options)

    assert seen(there.run()) == seen(here.run())
    assert len(there.messages) > 1
