"""Rows of JSON lines as dicts: run() gets what the lines have, each row once, in every way to cut and to fail."""

from __future__ import annotations

import gzip
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from parallelrun import run
from parallelrun_core.wire.states import JobState
from tests.cluster import Cluster

pytestmark = pytest.mark.integration

ECHOES = textwrap.dedent("""
    import sys
    def run(mini_batch):
        assert type(mini_batch) is list and "pandas" not in sys.modules
        return [{"rows": len(mini_batch), **row} for row in mini_batch]
""")
FAILS_ALONE = textwrap.dedent("""
    from parallelrun.script import ItemError
    def run(mini_batch):
        if any(row["id"] == 17 for row in mini_batch):
            raise ValueError("17")
        return [ItemError("5") if row["id"] == 5 else row["id"] for row in mini_batch]
""")
ROWS: list[dict[str, Any]] = [
    {"id": 0, "big": 2**70, "some": None}, {"id": "1", "nested": {"a": [1, 2.5, {"b": "ü"}]}}, {},
    {"id": 3, "new": True}, {"id": 4.5}, {"id": [], "text": "with\nlines"}, {"id": 6},
]  # fmt: skip
DICTS = [{"read_json_lines": {"rows_as": "dicts"}}]


def written(folder: Path, rows: list[dict[str, Any]], name: str = "rows.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def output(cluster: Cluster, job: str) -> list[Any]:
    result = cluster.result(job)
    assert result.state is JobState.COMPLETED
    return [json.loads(line) for line in cluster.output(result)]


def test_dict_rows_are_what_the_lines_have_wherever_they_are_cut() -> None:
    with Cluster(slots=2) as cluster:
        path = written(cluster.home / "data", ROWS)
        zipped = written(cluster.home / "zipped", ROWS, "rows.jsonl.gz")
        jobs = {
            (size, source): cluster.submit(
                ECHOES, inputs={"data": {"path": str(source), "transformations": DICTS}}, mini_batch_size=size,
                append_row_file_name="out.jsonl",
            )
            for size in ("rows:3", 20, "1mb") for source in (path, zipped)
        }  # fmt: skip
        for (size, source), job in jobs.items():
            rows = output(cluster, job)
            assert [{key: row[key] for key in row if key != "rows"} for row in rows] == ROWS, (size, source)
            if size == "rows:3":
                assert [row["rows"] for row in rows] == [3, 3, 3, 3, 3, 3, 1]
        some = cluster.submit(
            ECHOES, inputs={"data": {"path": str(path), "transformations": [*DICTS, {"skip": 1}, {"take": 2}]}},
            mini_batch_size="rows:1", append_row_file_name="out.jsonl",
        )  # fmt: skip
        assert output(cluster, some) == [{"rows": 1, **row} for row in ROWS[1:3]]


def test_dict_rows_that_fail_are_lost_alone_also_when_run_apart() -> None:
    with Cluster(slots=1) as cluster:
        path = written(cluster.home / "data", [{"id": number} for number in range(30)])
        job = cluster.submit(
            FAILS_ALONE, inputs={"data": {"path": str(path), "transformations": DICTS}}, mini_batch_size="rows:10",
            run_max_try=1, on_failure="isolate", append_row_file_name="out.jsonl",
        )  # fmt: skip
        assert output(cluster, job) == [number for number in range(30) if number not in (5, 17)]


def test_dict_rows_of_a_document_of_azure_with_the_options_of_its_engine(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "score.py").write_text(ECHOES)
    step = {
        "type": "parallel", "input_data": "${{inputs.data}}", "mini_batch_size": "10",
        "inputs": {"data": {"type": "uri_file", "path": str(written(tmp_path / "data", ROWS))}},
        "outputs": {"rows": {"type": "uri_file", "path": str(tmp_path / "rows.jsonl")}},
        "task": {
            "type": "run_function", "code": str(tmp_path / "src"), "entry_script": "score.py",
            "environment": "azureml:any@latest",
            "program_arguments": "--amlbi_file_format jsonl --amlbi_mini_batch_rows 4",
            "append_row_to": "${{outputs.rows}}",
        },
    }  # fmt: skip
    result = run({**step, "name": "rows"}, output=tmp_path / "out", progress=False)
    assert [json.loads(line)["rows"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == [4] * 4 + [
        3
    ] * 3
    assert result.job.state == "completed"
