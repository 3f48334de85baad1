"""Tables in object stores are the same as on disk: cuts, rows, types and keys; and only what is needed is read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from parallelrun_agent.staging import mini_batches
from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.interface import unpacked
from parallelrun_master.planning.file_server import FileServer
from parallelrun_worker.tables.elsewhere import StagedFile, read_range
from tests.integration.storage.conftest import Bucket, Store
from tests.integration.storage.tables import Make, avro, delta, lines, parquet, seen
from tests.object_servers import Moto, ObjectServer
from tests.twins.sabotage import expect_failure

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(Moto)


HEADER = "number,text,day\n"
CSV = HEADER + lines(range(3000))
MULTI_LINE = "a,b\n" + "".join(f'{number},"one\ntwo"\n' for number in range(2000))
OBJECTS: list[dict[str, object]] = [{"number": n, **({"odd": True} if n % 2 else {})} for n in range(3000)]
JSON_LINES = "".join(json.dumps(each) + "\n" for each in OBJECTS)
LONG_RECORD = HEADER + "1,a,2020-01-01\n2," + "y" * 300_000 + ",2020-01-02\n" + lines(range(3, 3000))
LONG_HEADER = ",".join(f"column{number}" for number in range(900)) + "\n" + (",".join("1" * 900) + "\n") * 4
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
    "csv of returns, in utf-32 without a mark": (
        {"a.csv": CSV.replace("\n", "\r").encode("utf-32-be"), "b.csv": CSV}, ["read_delimited"], {"size": "10kb"},
    ),
    "csv of returns over lines": (
        {"a.csv": MULTI_LINE.replace("\n", "\r")}, [delimited(support_multi_line=True)], {"size": "4kb"},
    ),
    "csv, columns by name below a separator": (
        {"a.csv": "sep=;\n" + CSV.replace(",", ";"), "b.csv": "#\n" + "day,text,number\n" + lines(range(99))},
        [delimited(columns_by="name", comment="#")], {"size": "10kb"},
    ),
    "csv below many lines": (
        {"a.csv": "any line that is skipped\n" * 900 + CSV}, [delimited(skip_lines=900)], {"size": "10kb"},
    ),
    "csv, compressed": (
        {"a.csv.gz": gzip.compress(CSV.encode()), "b": bz2.compress(CSV.encode())}, ["read_delimited"],
        {"size": "1kb"},
    ),
    "csv, compressed, by rows": ({"a": gzip.compress(CSV.encode())}, ["read_delimited"], {"size": "rows:700"}),
    "json lines, compressed": ({"a.jsonl.xz": lzma.compress(JSON_LINES.encode())}, ["read_json_lines"], {"size": "99"}),
    "csv with a mark": ({"a.csv": CSV.encode("utf-8-sig")}, ["read_delimited"], {"size": "10kb"}),
    "csv over lines": ({"a.csv": MULTI_LINE}, [delimited(support_multi_line=True)], {"size": "4kb"}),
    "csv by rows": ({"a.csv": CSV}, ["read_delimited", {"skip": 10}, {"take": 2000}], {"size": "rows:300"}),
    "csv, a long record": ({"a.csv": LONG_RECORD}, ["read_delimited"], {"size": "10kb"}),
    "csv, a long header": ({"a.csv": LONG_HEADER}, ["read_delimited"], {"size": "5kb"}),
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


@pytest.mark.parametrize("partitions", [[], ["day"]], ids=["whole", "partitioned"])
def test_a_delta_table_is_the_same_as_on_disk(bucket: Bucket, job: Make, tmp_path: Path, partitions: list[str]) -> None:
    delta(tmp_path / "t", partitions)
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            bucket.put(str(path.relative_to(tmp_path)), path.read_bytes())
    steps = [{"read_delta_lake": {"version_as_of": 1}}, {"keep_columns": ["number", "day"]}]

    there, here = job(bucket.url("t"), *steps, size="1kb"), job(str(tmp_path / "t"), *steps, size="1kb")

    assert seen(there.run()) == seen(here.run())
    assert len(there.messages) == len(here.messages) > 1


def test_an_mltable_in_a_store_is_the_same_as_on_disk(bucket: Bucket, job: Make, tmp_path: Path) -> None:
    table = f"""
        paths: [{{pattern: ./data/k=*/*.csv}}, {{file: {bucket.url("t/x/k=3/c.csv")}}}]
        transformations:
        - extract_columns_from_partition_format: k={{k}}/{{*}}
        - read_delimited: {{include_path_column: true}}
        - filter: col('number') > 3
    """
    bucket.put("t/x/k=3/c.csv", (HEADER + lines(range(10))).encode())
    for at in ("t/data/k=1/a.csv", "t/data/k=2/b.csv", "t/data/k=2/b.txt"):
        bucket.put(at, CSV.encode())
    bucket.put("t/MLTable", table.encode())

    in_store = job(bucket.url("t"), size="20kb")
    local = tmp_path / "t"
    local.mkdir()
    (local / "MLTable").write_text(table.replace("./data", bucket.url("t/data")))
    beside = job(str(local), size="20kb")

    frames: list[pd.DataFrame] = [each.value for each in in_store.run()]  # type: ignore[misc]
    assert {path for frame in frames for path in frame["Path"]} == {
        bucket.url(key) for key in ("t/data/k=1/a.csv", "t/data/k=2/b.csv", "t/x/k=3/c.csv")
    }
    assert sum(map(len, frames)) == 2 * 2996 + 6
    assert seen(beside.run()) == seen(in_store.run())


def test_what_is_no_mltable_is_told_by_name(bucket: Bucket, job: Make) -> None:
    bucket.put("t/MLTable", b"paths: [{folders: x}]")
    with pytest.raises(InvalidInput, match="MLTable, /paths/0/folders"):
        job(bucket.url("t"))
    with pytest.raises(InvalidInput, match="none' can't be read: there is no such object"):
        job(bucket.url("none"))


def test_a_column_that_no_file_has_is_told_before_anything_is_cut(bucket: Bucket, job: Make) -> None:
    bucket.put("t/a.parquet", parquet(10))
    with pytest.raises(InvalidInput, match="nosuch"):
        job(bucket.url("t"), "read_parquet", {"keep_columns": ["nosuch"]})


def test_a_replaced_file_fails_its_mini_batches_and_no_other(bucket: Bucket, job: Make) -> None:
    bucket.put("t/a.csv", CSV.encode())
    bucket.put("t/b.csv", CSV.encode())
    planned = job(bucket.url("t"), "read_delimited", size="40kb")
    first = planned.loaded(planned.messages[0])
    bucket.put("t/a.csv", CSV.encode()[:-100])

    loaded = [planned.loaded(raw) for raw in planned.messages[1:]]

    assert first is not None
    assert {failure.partition(":")[0] for failure in planned.failures} == {"INPUT_CHANGED"}
    assert all(bucket.url("t/a.csv") in failure for failure in planned.failures)
    paths = [each.dataset.paths for each in loaded if each is not None and each.dataset is not None]
    assert paths == [[bucket.url("t/b.csv")]] * (len(planned.messages) // 2)


def test_rows_are_not_grouped_of_a_file_that_was_replaced(
    bucket: Bucket, job: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("t/a.csv", CSV.encode())
    begin = FileServer.__enter__
    children = []

    def replaced(server: FileServer) -> FileServer:
        children.append(server)
        bucket.put("t/a.csv", CSV.encode()[: -100 * len(children)])
        return begin(server)

    with monkeypatch.context() as during:
        during.setattr(FileServer, "__enter__", replaced)
        with pytest.raises(InvalidInput, match="has been replaced since it was listed"):
            job(bucket.url("t"), "read_delimited", keys=["day"])


def test_what_was_not_staged_is_an_error_and_never_a_hole(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"0123456789")
    with StagedFile("s3://b/a", (100, [(0, str(tmp_path / "part")), (50, str(tmp_path / "part"))])) as file:
        assert file.pread(100, 8) == b"89"
        assert read_range(file, 50, 60) == b"0123456789"  # type: ignore[arg-type]
        assert file.pread(1, 100) == b""
        for start, end in ((8, 11), (10, 11), (49, 51), (55, 61)):
            with pytest.raises(OSError, match="thought not to need"):
                read_range(file, start, end)  # type: ignore[arg-type]
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()


def test_a_reader_that_takes_holes_for_content_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_holes(file: StagedFile, size: int, at: int) -> bytes:
        return bytes(min(size, file.size - at))

    monkeypatch.setattr(StagedFile, "pread", with_holes)
    with expect_failure():
        test_what_was_not_staged_is_an_error_and_never_a_hole(tmp_path)


def test_an_agent_that_takes_any_version_is_found(bucket: Bucket, job: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_batches, "unpacked", lambda version: unpacked(version)._replace(tag=""))
    with expect_failure():
        test_a_replaced_file_fails_its_mini_batches_and_no_other(bucket, job)
