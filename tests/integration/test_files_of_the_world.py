"""Small inputs as the world writes them, through whole clusters: each row with its value, or a word about it."""

from __future__ import annotations

import gzip
import io
import json
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parallelrun_core.folder.records import JobResult
from parallelrun_core.intake.reading import read_job
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster
from tests.fuzz.parser import FINDS

pytestmark = pytest.mark.integration

BIG = 2**53 + 1
SCRIPT = textwrap.dedent("""
    import pandas as pd
    def run(mini_batch):
        rows = mini_batch.astype(object).where(mini_batch.notna(), None).itertuples(index=False, name=None)
        return [{name: None if v is None else str(v) for name, v in zip(mini_batch.columns, row)} for row in rows]
""")
Rows = list[dict[str, Any]]
Files = dict[str, bytes]


def numbered(first: int, count: int = 10) -> Rows:
    return [{"id": str(number), "text": f"t{number}"} for number in range(first, first + count)]


def text(rows: Rows, end: str = "\n") -> bytes:
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    return (end.join(lines) + end).encode()


def parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def zipped(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("table.csv", content)
    return sink.getvalue()


def late_numbers() -> Rows:
    small = [{"id": str(number), "v": "1"} for number in range(300)]
    return [*small, {"id": str(2**64 - 1), "v": "1"}, {"id": str(BIG), "v": "2"}]


def turned() -> tuple[Files, Rows]:
    """The second file has its columns in another order."""
    rows = [{"id": str(n), "x": f"{n}1", "y": f"{n}2"} for n in range(12)]
    other = [{name: row[name] for name in ("y", "id", "x")} for row in rows[6:]]
    return {"a.csv": text(rows[:6]), "b.csv": text(other)}, rows


SPARK = {"_SUCCESS": b"", "._SUCCESS.crc": b"crc\0\0\0\0\0", ".part-0.csv.crc": b"crc\0\0\0\2\0\xff\x10\n"}
MAC = {"._a.csv": b"\0\5\x16\7\0\2\0\0Mac OS X\n" + b"\0" * 60, ".DS_Store": b"\0\0\0\1Bud1\n" + b"\0" * 60}

EXACT: dict[str, tuple[str, Files, Rows]] = {
    "line_ends": (
        "read_delimited",
        {"a.csv": text(numbered(0)), "b.csv": text(numbered(10), "\r"), "c.csv": text(numbered(20), "\r\n")},
        numbered(0, 30),
    ),
    "carriage_returns_alone": ("read_delimited", {"a.csv": text(numbered(0), "\r")}, numbered(0)),
    "utf_16_without_a_mark": (
        "read_delimited", {"a.csv": text(numbered(0)).decode().encode("utf-16-be")}, numbered(0),
    ),
    "a_folder_of_spark": (
        "read_delimited", {**SPARK, "part-0.csv": text(numbered(0)), "part-1.csv": text(numbered(10))}, numbered(0, 20),
    ),
    "a_folder_of_spark_with_parquet": (
        "read_parquet", {**SPARK, "part-0.snappy.parquet": parquet(id=[1, 2])}, [{"id": "1"}, {"id": "2"}],
    ),
    "a_folder_of_a_mac": ("read_delimited", {**MAC, "a.csv": text(numbered(0))}, numbered(0)),
    "columns_in_another_order": ("read_delimited", *turned()),
    "a_line_that_names_the_delimiter": (
        "read_delimited", {"a.csv": b"sep=;\nid;x\n1;11\n2;21\n"}, [{"id": "1", "x": "11"}, {"id": "2", "x": "21"}],
    ),
    "gzip": ("read_delimited", {"a.csv.gz": gzip.compress(text(numbered(0, 200)))}, numbered(0, 200)),
    "zip": ("read_delimited", {"a.csv.zip": zipped(text(numbered(0, 200)))}, numbered(0, 200)),
    "large_numbers_beside_a_null": (
        "read_delimited", {"a.csv": f"id,v\n{BIG},1\n,2\n{BIG + 2},3\n".encode()},
        [{"id": str(BIG), "v": "1"}, {"id": None, "v": "2"}, {"id": str(BIG + 2), "v": "3"}],
    ),
    "large_numbers_of_parquet": (
        "read_parquet",
        {"a.parquet": parquet(id=pa.array([BIG, None], pa.int64()), u=pa.array([2**64 - 1, None], pa.uint64()))},
        [{"id": str(BIG), "u": str(2**64 - 1)}, {"id": None, "u": None}],
    ),
    "large_numbers_after_the_sample": ("read_delimited", {"a.csv": text(late_numbers())}, late_numbers()),
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, slots=2) as running:
        yield running


Submit = Callable[..., JobResult]


@pytest.fixture
def submit(cluster: Cluster, tmp_path: Path) -> Submit:
    def ended(step: str | dict[str, Any], files: Files, script: str = SCRIPT, **settings: Any) -> JobResult:
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        inputs = {"rows": {"path": str(tmp_path), "transformations": [step]}}
        settings = {"append_row_file_name": "rows.jsonl", **settings}
        spec = read_job({"entry_script": "entry.py", "inputs": inputs, **settings}).job
        document = spec.model_dump(mode="json", exclude_unset=True, exclude={"entry_script"})
        return cluster.result(cluster.submit(script, **document))

    return ended


@pytest.mark.parametrize("case", EXACT)
def test_files_of_the_world_come_through_with_their_values(cluster: Cluster, submit: Submit, case: str) -> None:
    step, files, expected = EXACT[case]
    result = submit(step, files)
    assert result.state is JobState.COMPLETED, result.failure
    assert [json.loads(line) for line in cluster.output(result)] == expected


HEADERS_BY_POSITION = [dict(zip(("id", "x", "y"), row, strict=True)) for row in (
    *((str(n), str(int(f"{n}1")), str(int(f"{n}2"))) for n in range(6)),
    *((f"{n}2", str(n), f"{n}1") for n in range(6, 12)),
)]  # fmt: skip
OF_AZURE: dict[str, tuple[Rows, list[tuple[str, ...]]]] = {
    "a_folder_of_spark": (numbered(0, 20), [("._SUCCESS.crc", "(3 files)", "hidden_files: read")]),
    "a_folder_of_spark_with_parquet": ([{"id": "1"}, {"id": "2"}], [("._SUCCESS.crc", "hidden_files: read")]),
    "a_folder_of_a_mac": (numbered(0), [("._a.csv", ".DS_Store", "(2 files)", "hidden_files: read")]),
    "columns_in_another_order": (
        HEADERS_BY_POSITION,
        [
            ("b.csv", "'y', 'id', 'x'", "by their position (6 rows)", "columns_by: name"),
            ("a.csv", "column 'x', line 2: '01' was read as 1", "inference: exact"),
            ("a.csv", "column 'y', line 2: '02' was read as 2", "inference: exact"),
        ],
    ),
    "large_numbers_after_the_sample": (
        [{"id": row["id"], "v": "True" if row["v"] == "1" else None} for row in late_numbers()],
        [
            ("a.csv", "column 'v', line 303: '2' is not true or false", "became null", "on_mismatch: keep"),
            ("a.csv", "column 'v', line 2: '1' was read as True (301 values)", "inference: exact"),
        ],
    ),
}
"""Files that have another result, or a warning, in a document of Azure ML: the result of its own engine."""


def document_of_azure(folder: Path, files: Files, step: str) -> dict[str, Any]:
    """A parallel job (version 2) over an MLTable, whose script is beside the document."""
    (folder / "data").mkdir()
    for name, content in files.items():
        (folder / "data" / name).write_bytes(content)
    (folder / "data" / "MLTable").write_text(json.dumps({"paths": [{"folder": "."}], "transformations": [step]}))
    (folder / "entry.py").write_text(SCRIPT)
    return {
        "type": "parallel", "inputs": {"rows": {"type": "mltable", "path": "data"}}, "mini_batch_size": "400",
        "input_data": "${{inputs.rows}}", "outputs": {"out": {"type": "uri_file", "path": str(folder / "rows.jsonl")}},
        "resources": {"instance_count": 1}, "max_concurrency_per_instance": 2, "retry_settings": {"max_retries": 0},
        "task": {
            "type": "run_function", "code": ".", "entry_script": "entry.py", "append_row_to": "${{outputs.out}}",
            "environment": "azureml:any@latest",
        },
    }  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_files_of_the_world_in_a_document_of_azure_are_as_there_or_told(
    cluster: Cluster, tmp_path: Path, case: str
) -> None:
    step, files, exact = EXACT[case]
    expected, warnings = OF_AZURE.get(case, (exact, []))
    document = document_of_azure(tmp_path, files, step)
    if case == "large_numbers_after_the_sample":
        document["mini_batch_size"] = "1mb"  # so that one worker counts
    spec = read_job(document, folder=tmp_path).job
    job = cluster.submit(SCRIPT, **spec.model_dump(mode="json", exclude_unset=True, exclude={"entry_script", "code"}))
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED, result.failure
    assert [json.loads(line) for line in cluster.output(result)] == expected
    assert len(result.warnings) == len(warnings), result.warnings
    for words in warnings:
        assert any(all(word in warning for word in words) for warning in result.warnings), (words, result.warnings)


@pytest.mark.parametrize("left", [SPARK, MAC], ids=["spark", "mac"])
def test_files_of_the_world_that_are_skipped_are_named_in_the_result(submit: Submit, left: Files) -> None:
    result = submit("read_delimited", {**left, "a.csv": text(numbered(0))})
    (warning,) = result.warnings
    assert f"({len(left)} files)" in warning
    assert all(name in warning for name in left)
    assert "hidden_files: read" in warning


def test_files_of_the_world_with_a_bad_line_fail_one_mini_batch_by_name(cluster: Cluster, submit: Submit) -> None:
    lines = {name: "".join(f'{{"id":{at * 10 + n}}}\n' for n in range(10)) for at, name in enumerate("abcd")}
    files = {f"{name}.jsonl": content.replace('{"id":25}', '{"id":25').encode() for name, content in lines.items()}
    result = submit("read_json_lines", files, run_max_try=1)
    assert result.state is JobState.COMPLETED, result.failure
    expected = [{"id": str(number)} for number in range(40) if number // 10 != 2]
    assert [json.loads(line) for line in cluster.output(result)] == expected
    assert result.progress.failed == 1
    errors = (cluster.folder(result.job_id).logs / "user" / "error.txt").read_text()
    assert "c.jsonl" in errors


def test_files_of_the_world_with_a_footer_that_ends_processes_fail_alone(cluster: Cluster, submit: Submit) -> None:
    damaged = (FINDS / "parquet" / "levels-that-do-not-fit").read_bytes()
    files = {"a.parquet": parquet(a=[1, 2]), "b.parquet": damaged, "c.parquet": parquet(a=[3])}
    result = submit("read_parquet", files, run_max_try=1)
    assert result.state is JobState.COMPLETED, result.failure
    assert [json.loads(line) for line in cluster.output(result)] == [{"a": "1"}, {"a": "2"}, {"a": "3"}]
    assert result.progress.failed == 1
    assert "b.parquet" in (cluster.folder(result.job_id).logs / "user" / "error.txt").read_text()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_of_the_world_that_are_damaged_are_one_failure_beside_groups(
    cluster: Cluster, submit: Submit, kind: str
) -> None:
    """With keys from columns, too, for which all files are read before there are mini-batches."""
    if kind == "csv":
        files = {"a.csv": b"k,v\n1,x\n2,y\n", "b.csv": b"k,v\n1,\xff\xe4\n", "c.csv": b"k,v\n2,z\n"}
    else:
        damaged = (FINDS / "parquet" / "levels-that-do-not-fit").read_bytes()
        whole = parquet(k=[1, 2], v=["x", "y"]), parquet(k=[2], v=["z"])
        files = {"a.parquet": whole[0], "b.parquet": damaged, "c.parquet": whole[1]}
    step = "read_delimited" if kind == "csv" else "read_parquet"
    result = submit(step, files, run_max_try=1, partition_keys=["k"])
    assert result.state is JobState.COMPLETED, result.failure
    rows = [{"k": "1", "v": "x"}, {"k": "2", "v": "y"}, {"k": "2", "v": "z"}]
    assert [json.loads(line) for line in cluster.output(result)] == rows
    assert result.progress.failed == 1
    assert f"b.{kind}" in (cluster.folder(result.job_id).logs / "user" / "error.txt").read_text()


def test_files_of_the_world_whose_rows_are_grouped_are_warned_of_in_the_same_words(submit: Submit) -> None:
    """The leader has the rows read before there are mini-batches; those of the groups say nothing again."""
    rows = "".join(f"{n % 3},{n}\n" for n in range(300))
    files = {"a.csv": f"k,v\n{rows}1,n/a\n0,none\n".encode(), "b.csv": b"v,k\n5,1\n", "c.csv": "k,v\n0,é\n".encode()}
    step = {"read_delimited": {"encoding": "latin1", "on_mismatch": "null", "columns_by": "position"}}
    plain, grouped = submit(step, files), submit(step, files, partition_keys=["k"])
    assert grouped.state is JobState.COMPLETED, grouped.failure
    assert grouped.progress.scheduled > 1
    assert sorted(grouped.warnings) == sorted(plain.warnings)
    for words in (
        ("a.csv", "column 'v', line 302", "'n/a'", "3 values in 2 files"),
        ("b.csv", "by their position"),
        ("c.csv", "UTF-8"),
    ):
        assert any(all(word in warning for word in words) for warning in grouped.warnings), (words, grouped.warnings)


def test_files_of_the_world_of_which_ten_in_many_are_bad_are_named_each(cluster: Cluster, tmp_path: Path) -> None:
    bad = {number * 1_903 + 11 for number in range(10)}
    (folder := tmp_path / "many").mkdir()
    for number in range(20_000):
        (folder / f"f{number:05d}{'.bad' if number in bad else '.jpg'}").touch()
    script = """
        def run(mini_batch):
            for path in mini_batch:
                if path.endswith(".bad"):
                    raise ValueError(f"{path} is no picture")
            return [path[-9:-4] for path in mini_batch]
    """
    settings = {"mini_batch_size": 1000, "on_failure": "isolate", "error_threshold": 10, "run_max_try": 1}
    spec = read_job({"entry_script": "entry.py", "inputs": str(folder), **settings}).job
    document = spec.model_dump(mode="json", exclude_unset=True, exclude={"entry_script"})
    result = cluster.result(cluster.submit(textwrap.dedent(script), **document))
    assert result.state is JobState.COMPLETED, result.failure
    assert [int(line) for line in cluster.output(result)] == [n for n in range(20_000) if n not in bad]
    failed = (cluster.folder(result.job_id).logs / "failed_items.csv").read_text().splitlines()[1:]
    assert len(failed) == 10
    assert all(f"f{number:05d}.bad" in line for number, line in zip(sorted(bad), failed, strict=True))


def test_files_of_the_world_whose_rows_run_forgets_to_return_fail_in_one_sentence(submit: Submit) -> None:
    result = submit("read_delimited", {"a.csv": text(numbered(0))}, "def run(mini_batch):\n    mini_batch.sum()\n")
    assert result.state is JobState.FAILED
    assert result.failure is not None
    assert "is a `return` missing?" in f"{result.failure.first_cause} {result.failure.hint}"


ROWS_OF_TURNED_COLUMNS = {"name": ["0,a", "1,b", "2,u", "3,v"], "position": ["0,a", "1,b", "u,2", "v,3"]}


@pytest.mark.parametrize("columns", ROWS_OF_TURNED_COLUMNS)
def test_files_of_the_world_returned_with_turned_columns_stay_under_their_names(
    cluster: Cluster, submit: Submit, columns: str
) -> None:
    files = {"a.parquet": parquet(id=[0, 1], y=["a", "b"]), "b.parquet": parquet(y=["u", "v"], id=[2, 3])}
    by = {} if columns == "name" else {"append_row_columns": columns}  # our own form says nothing, and has names
    result = submit(
        "read_parquet", files, "def run(mini_batch):\n    return mini_batch\n",
        append_row_file_name="rows.csv", append_row_separator=",", max_concurrency_per_instance=1, **by,
    )  # fmt: skip
    assert result.state is JobState.COMPLETED, result.failure
    assert cluster.output(result) == ROWS_OF_TURNED_COLUMNS[columns]
    (warning,) = result.warnings
    assert "returned the columns y, id" in warning
    assert "append_row_dataframe_header: true" in warning


@pytest.mark.parametrize("returned", ["[]", "mini_batch[:0]"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet", "rows.csv"])
def test_files_of_the_world_of_which_nothing_is_returned_give_an_empty_output(
    submit: Submit, returned: str, name: str
) -> None:
    script = f"def run(mini_batch):\n    return {returned}\n"
    result = submit("read_delimited", {"a.csv": text(numbered(0))}, script, append_row_file_name=name)
    assert result.state is JobState.COMPLETED, result.failure
    assert result.progress.rows == 0
    assert any("no row at all, so the output is empty" in warning for warning in result.warnings)


def test_files_of_the_world_of_which_a_document_of_azure_returns_nothing_fail(submit: Submit) -> None:
    script = "def run(mini_batch):\n    return []\n"
    result = submit("read_delimited", {"a.csv": text(numbered(0))}, script, empty_output="fail")
    assert result.failure is not None
    assert result.failure.code == "NO_ROWS"
    assert "empty_output: complete" in result.failure.hint
